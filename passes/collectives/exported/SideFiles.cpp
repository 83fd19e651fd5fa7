// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/exported/SideFiles.h"

#include "importers/torch_export/program/ProcessGroup.h"
#include "passes/collectives/exported/Contradictions.h"
#include "support/Json.h"

#include <cmath>
#include <set>

using namespace shardc;
using namespace shardc::collectives;

/// Ranks of one group, or of several of one size. Returns what is wrong, or null.
static const char *readRanks(JsonValue value, Group &group) {
  bool several = value.size() != 0 && (*value.elements().begin()).isArray();
  std::set<int64_t> distinct;
  size_t groups = 0;
  auto readOne = [&](JsonValue list) -> const char * {
    if (!list.isArray() || list.size() == 0 || (groups++ != 0 && list.size() != group.size))
      return "has groups of different sizes";
    group.size = list.size();
    for (JsonValue element : list.elements()) {
      std::optional<int64_t> rank = element.integer();
      if (!rank || *rank < 0 || !distinct.insert(*rank).second)
        return "is no list of distinct ranks";
      group.ranks.push_back(*rank);
    }
    return nullptr;
  };
  if (!several)
    return readOne(value);
  for (JsonValue list : value.elements())
    if (const char *wrong = readOne(list))
      return wrong;
  return nullptr;
}

std::optional<ProcessGroups> shardc::collectives::parseGroups(std::string_view json,
                                                              std::string &error,
                                                              std::string_view model) {
  std::optional<JsonDocument> document = JsonDocument::parse(json, error);
  if (!document)
    return std::nullopt;
  JsonValue root = document->root();
  if (!root.isObject()) {
    error = "groups are an object: {\"NAME\": [ranks], ...} or {\"NAME\": size, ...}";
    return std::nullopt;
  }
  if (root[model].isObject())
    root = root[model];
  ProcessGroups groups;
  std::string mistakes;
  for (JsonMember member : root.members()) {
    Group group;
    group.name = member.key;
    const char *wrong = nullptr;
    if (std::optional<int64_t> size = member.value.integer()) {
      if (*size < 1 || *size > INT32_MAX)
        wrong = "has a size out of range";
      else
        group.size = static_cast<uint32_t>(*size);
    } else if (member.value.isArray() && member.value.size() != 0) {
      wrong = readRanks(member.value, group);
    } else {
      wrong = "is neither a size nor a list of ranks";
    }
    if (!wrong && groups.contains(group.name))
      wrong = "is there twice";
    if (wrong)
      mistakes += (mistakes.empty() ? "group '" : "; group '") + group.name + "' " + wrong;
    else
      groups[group.name] = std::move(group);
  }
  if (mistakes.empty())
    return groups;
  error = mistakes;
  return std::nullopt;
}

ProcessGroups shardc::collectives::groupsInProgram(const torch_export::ExportedProgram &program) {
  ProcessGroups groups;
  for (const torch_export::Node &node : program.graph.nodes) {
    std::optional<torch_export::NamedGroup> group = torch_export::processGroup(node);
    // A node that says another size is found when the graph is filled.
    if (!group || !group->size || *group->size < 1 || *group->size > INT32_MAX)
      continue;
    auto [it, isNew] = groups.try_emplace(std::string(group->name));
    if (!isNew)
      continue;
    it->second.name = group->name;
    it->second.size = static_cast<uint32_t>(*group->size);
  }
  return groups;
}

std::optional<Durations> shardc::collectives::parseDurations(std::string_view json,
                                                             std::string &error) {
  std::optional<JsonDocument> document = JsonDocument::parse(json, error);
  if (!document)
    return std::nullopt;
  if (!document->root().isObject()) {
    error = "durations are an object: {\"NODE\": microseconds, ...}";
    return std::nullopt;
  }
  Durations durations;
  std::vector<std::string> wrong, twice;
  durations.reserve(document->root().size());
  for (JsonMember member : document->root().members()) {
    std::optional<double> us = member.value.real();
    if (!us || !(*us >= 0) || !std::isfinite(*us))
      wrong.push_back(std::string(member.key));
    else if (auto [it, isNew] = durations.try_emplace(std::string(member.key), *us);
             !isNew && it->second != *us)
      twice.push_back(it->first);
  }
  if (wrong.empty() && twice.empty())
    return durations;
  error.clear();
  if (!wrong.empty())
    error = (wrong.size() == 1 ? "the duration of " : "the durations of ") + listNames(wrong) +
            (wrong.size() == 1 ? " is no number of 0 or more" : " are no numbers of 0 or more");
  if (!twice.empty())
    error += (error.empty() ? "" : "; ") + listNames(twice) +
             (twice.size() == 1 ? " has two different durations" : " have two different durations");
  return std::nullopt;
}
