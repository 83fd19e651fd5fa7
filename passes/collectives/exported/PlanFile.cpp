// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/PlanFile.h"

#include "passes/collectives/core/CheckPlan.h"
#include "support/Json.h"
#include "support/JsonText.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

using namespace shardc;
using namespace shardc::collectives;

/// Line and column, from 1, of each element of an array. The text has been parsed: it is JSON.
static std::vector<std::pair<size_t, size_t>> placesOf(std::string_view json) {
  std::vector<std::pair<size_t, size_t>> places;
  size_t line = 1, lineBegin = 0, depth = 0;
  bool inString = false, expected = false;
  for (size_t at = 0; at != json.size(); ++at) {
    char c = json[at];
    if (c == '\n') {
      ++line;
      lineBegin = at + 1;
    }
    if (inString) {
      if (c == '\\')
        ++at; // what follows is no line break
      inString = c != '"';
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
      continue;
    if (expected && c != ']') {
      places.push_back({line, at - lineBegin + 1});
      expected = false;
    }
    if (c == '[' || c == '{')
      expected = depth++ == 0;
    else if (c == ']' || c == '}')
      --depth;
    else if (c == ',')
      expected = depth == 1;
    inString = c == '"';
  }
  return places;
}

/// A name in a message, with the escapes of JSON, as the file may have it. Files may have longer
/// ones than anybody wants to read.
static std::string quoted(std::string_view name) {
  constexpr size_t most = 120;
  std::string text = jsonString(name.substr(0, most));
  text.front() = text.back() = '\'';
  return name.size() > most ? text.insert(text.size() - 1, "...") : text;
}

namespace {

constexpr std::string_view verbs[] = {"op", "pack", "start", "wait", "unpack"};
constexpr PlanItem::Kind kindOfVerb[] = {PlanItem::Kind::Op, PlanItem::Kind::Pack,
                                         PlanItem::Kind::Start, PlanItem::Kind::Wait,
                                         PlanItem::Kind::Unpack};

class Reader {
public:
  Reader(const Graph &graph) : graph(graph) {
    nodes.reserve(graph.numNodes());
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      if (auto [it, isNew] = nodes.try_emplace(graph.nameOf(node), node); !isNew)
        it->second = several;
  }

  /// Messages by the element of the file that they are about; those without one come last, at
  /// `none`.
  using Mistakes = std::multimap<uint32_t, std::string>;

  Mistakes read(JsonValue root) {
    std::vector<Item> items;
    uint32_t element = 0;
    for (JsonValue value : root.elements())
      items.push_back(readItem(value, element++));
    // Buckets may be packed before the item that says what is in them.
    for (const Item &item : items)
      if (item.kind == PlanItem::Kind::Start && item.name)
        readBucket(item);
    for (const Item &item : items)
      if (item.name)
        add(item);
    check();
    return std::move(mistakes);
  }

  Plan plan;

private:
  static constexpr NodeId several = none - 1;

  struct Item {
    uint32_t element;
    PlanItem::Kind kind = PlanItem::Kind::Op;
    std::optional<std::string_view> name; // none: reported
    JsonValue type, members;
  };

  void fail(uint32_t element, std::string text) { mistakes.emplace(element, std::move(text)); }

  Item readItem(JsonValue value, uint32_t element) {
    Item item{.element = element, .name = {}, .type = {}, .members = {}};
    if (!value.isObject()) {
      fail(element, "an item is an object, such as {\"op\": NAME}");
      return item;
    }
    JsonValue name;
    size_t numVerbs = 0;
    std::set<std::string_view> seen;
    for (JsonMember member : value.members()) {
      if (!seen.insert(member.key).second)
        fail(element, quoted(member.key) + " is there twice");
      auto verb = std::find(std::begin(verbs), std::end(verbs), member.key);
      if (verb != std::end(verbs)) {
        item.kind = kindOfVerb[verb - std::begin(verbs)];
        name = member.value;
        ++numVerbs;
      } else if (member.key == "kind") {
        item.type = member.value;
      } else if (member.key == "members") {
        item.members = member.value;
      } else {
        fail(element, "items have no " + quoted(member.key));
      }
    }
    if (numVerbs != 1) {
      fail(element, "an item has one of \"op\", \"pack\", \"start\", \"wait\" and \"unpack\"");
      return item;
    }
    if (!(item.name = name.string()))
      fail(element, "the name of a node or a bucket is a string");
    if (item.kind != PlanItem::Kind::Start && (item.type.exists() || item.members.exists()))
      fail(element, "only a \"start\" has a kind and members");
    return item;
  }

  /// The node, or `none` after a mistake was reported.
  NodeId find(std::string_view name, uint32_t element) {
    auto it = nodes.find(name);
    if (it != nodes.end() && it->second != several)
      return it->second;
    fail(element, it == nodes.end() ? "the graph has no node " + quoted(name)
                                    : "the graph has several nodes " + quoted(name));
    return none;
  }

  void readBucket(const Item &item) {
    if (!buckets.try_emplace(*item.name, plan.buckets.size()).second)
      return fail(item.element, "bucket " + quoted(*item.name) + " is started twice");
    std::optional<std::string_view> type = item.type.string();
    std::optional<CollectiveKind> kind = type ? parseCollectiveKind(*type) : std::nullopt;
    if (!kind)
      fail(item.element,
           "the kind of bucket " + quoted(*item.name) + " is not \"AG\", \"RS\" or \"AR\"");
    bool right = item.members.isArray();
    std::vector<NodeId> members;
    for (JsonValue value : item.members.elements()) {
      std::optional<std::string_view> name = value.string();
      right &= name.has_value();
      if (NodeId node = name ? find(*name, item.element) : none; node != none)
        members.push_back(node);
    }
    if (!right)
      fail(item.element, "the members of bucket " + quoted(*item.name) + " are a list of names");
    // The others are compared with the first.
    if (!members.empty() && kind && graph.isCollective(members[0]) &&
        graph.kindOf(members[0]) != *kind)
      fail(item.element, graph.nameOf(members[0]) + ": is of kind " +
                             std::string(shortNameOf(graph.kindOf(members[0]))) +
                             ", but its bucket is said to be of kind " +
                             std::string(shortNameOf(*kind)));
    // Of a bucket that has lost members it is not said what it is without them.
    isWhole.push_back(right && members.size() == item.members.size());
    elementOfBucket.push_back(item.element);
    plan.buckets.push_back(std::move(members));
  }

  void add(const Item &item) {
    uint32_t id;
    if (item.kind == PlanItem::Kind::Op) {
      id = find(*item.name, item.element);
      if (id == none)
        return;
    } else {
      auto it = buckets.find(*item.name);
      if (it == buckets.end())
        return fail(item.element, "no bucket " + quoted(*item.name) + " is started");
      id = it->second;
      if (item.kind == PlanItem::Kind::Start && elementOfBucket[id] != item.element)
        return; // started twice
    }
    plan.items.push_back({item.kind, id});
    elementOf.push_back(item.element);
  }

  void check() {
    for (PlanMistake &mistake : planMistakes(graph, plan,
                                             {/*mixedDtype=*/true,
                                              /*groupsByName=*/true})) {
      bool ofBucket = mistake.item == none && mistake.bucket != none;
      if (ofBucket && !isWhole[mistake.bucket])
        continue;
      fail(ofBucket               ? elementOfBucket[mistake.bucket]
           : mistake.item == none ? none
                                  : elementOf[mistake.item],
           std::move(mistake.text));
    }
  }

  const Graph &graph;
  std::unordered_map<std::string_view, NodeId> nodes;
  std::unordered_map<std::string_view, BucketId> buckets;
  /// Elements of the file by item and by bucket of the plan.
  std::vector<uint32_t> elementOf, elementOfBucket;
  std::vector<bool> isWhole;
  Mistakes mistakes;
};

} // namespace

std::optional<Plan> shardc::collectives::parsePlan(std::string_view json, const Graph &graph,
                                                   std::vector<std::string> &errors) {
  std::string message;
  std::optional<JsonDocument> document = JsonDocument::parse(json, message);
  if (!document) {
    errors.push_back(message);
    return std::nullopt;
  }
  if (!document->root().isArray()) {
    errors.push_back("a plan is an array of items, as --emit writes it");
    return std::nullopt;
  }
  Reader reader(graph);
  Reader::Mistakes mistakes = reader.read(document->root());
  if (mistakes.empty())
    return std::move(reader.plan);
  std::vector<std::pair<size_t, size_t>> places = placesOf(json);
  for (const auto &[element, text] : mistakes) {
    std::string place;
    if (element != none)
      place = std::to_string(places[element].first) + ":" + std::to_string(places[element].second) +
              ": ";
    errors.push_back(place + text);
  }
  return std::nullopt;
}
