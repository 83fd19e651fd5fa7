// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/GroupRanks.h"

#include "importers/torch_export/program/ProcessGroup.h"
#include "support/Json.h"

#include "dialects/dist/Dist.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

struct Named {
  std::optional<int64_t> size; // as the program says
  bool conflict = false;
};

using NamedGroups = llvm::MapVector<StringRef, Named>; // in the order in which they occur

void findGroups(const Graph &graph, NamedGroups &names) {
  for (const Node &node : graph.nodes) {
    for (const NamedArgument &input : node.inputs)
      if (auto *nested = std::get_if<GraphArg>(&input.value))
        findGroups(*nested->graph, names);
    if (!StringRef(node.target).contains("_c10d_functional."))
      continue;
    std::optional<NamedGroup> group = processGroup(node);
    if (!group)
      continue;
    Named &entry = names[group->name];
    entry.conflict |= group->size && entry.size && *group->size != *entry.size;
    if (group->size)
      entry.size = group->size;
  }
}

std::optional<std::vector<int64_t>> readRanks(JsonValue value) {
  std::vector<int64_t> ranks;
  for (JsonValue element : value.elements()) {
    std::optional<int64_t> rank = element.integer();
    if (!rank || *rank < 0 || *rank >= dist::maxDevices)
      return std::nullopt;
    ranks.push_back(*rank);
  }
  return ranks.empty() ? std::nullopt : std::optional(std::move(ranks));
}

// Null if the value is no group.
Attribute readGroup(MLIRContext *context, StringRef name, JsonValue value) {
  if (std::optional<int64_t> size = value.integer()) {
    if (*size < 1 || *size > dist::maxDevices)
      return {};
    return dist::NamedGroupAttr::get(context, StringAttr::get(context, name), *size);
  }
  std::vector<std::vector<int64_t>> lists;
  if (std::optional<std::vector<int64_t>> ranks = readRanks(value))
    lists.push_back(std::move(*ranks));
  else
    for (JsonValue element : value.elements()) {
      std::optional<std::vector<int64_t>> inner = readRanks(element);
      if (!inner)
        return {};
      lists.push_back(std::move(*inner));
    }
  std::vector<int64_t> all;
  llvm::DenseSet<int64_t> seen;
  for (const std::vector<int64_t> &list : lists)
    for (int64_t rank : list) {
      if (list.size() != lists.front().size() || !seen.insert(rank).second)
        return {};
      all.push_back(rank);
    }
  if (all.empty())
    return {};
  return dist::GroupsAttr::get(context, int64_t(lists.front().size()), all);
}

} // namespace

FailureOr<Groups> Groups::find(const ExportedProgram &program, StringRef source, StringRef model,
                               Location file) {
  Groups found;
  NamedGroups names;
  findGroups(program.graph, names);
  if (names.empty())
    return found;
  MLIRContext *context = file.getContext();
  std::optional<JsonDocument> document;
  JsonValue root;
  bool consecutive = source == "consecutive";
  if (!source.empty() && !consecutive) {
    auto buffer = llvm::MemoryBuffer::getFile(source);
    if (!buffer)
      return emitError(file) << "cannot read the groups file '" << source
                             << "': " << buffer.getError().message();
    std::string error;
    document = JsonDocument::parse((*buffer)->getBuffer(), error);
    if (!document || !document->root().isObject())
      return emitError(file) << "the groups file '" << source << "' is no JSON object"
                             << (error.empty() ? "" : ": ") << error;
    root = document->root();
    if (root[model].isObject())
      root = root[model];
  }
  std::string missing, wrong;
  auto list = [](std::string &text, StringRef name, const Named &entry) {
    text += (text.empty() ? "" : ", ") + ("\"" + name + "\"").str();
    if (entry.size)
      text += " of " + std::to_string(*entry.size) + " ranks";
  };
  for (auto &[name, entry] : names) {
    JsonValue value = root[name];
    Attribute group;
    if (consecutive && entry.size && *entry.size > 0 && *entry.size <= dist::maxDevices) {
      std::vector<int64_t> ranks(static_cast<size_t>(*entry.size));
      std::iota(ranks.begin(), ranks.end(), 0);
      group = dist::GroupsAttr::get(context, *entry.size, ranks);
    } else if (!value.exists()) {
      list(missing, name, entry);
      continue;
    } else {
      group = readGroup(context, name, value);
    }
    auto known = dyn_cast_or_null<dist::GroupAttrInterface>(group);
    if (!known || entry.conflict || (entry.size && known.getGroupSize() != *entry.size))
      list(wrong, name, entry);
    found.groups[name] = group;
  }
  if (!missing.empty())
    emitError(file)
        << "the ranks of process groups are not in the file: " << missing
        << ". Name them in a JSON file with --groups, {\"name\": [0, 1, ...]} or {\"name\": "
           "size}, or assume ranks 0, 1, ... with --groups=consecutive";
  if (!wrong.empty())
    emitError(file)
        << "--groups gives these process groups no valid list of ranks, or another size "
           "than the graph says: "
        << wrong;
  if (!missing.empty() || !wrong.empty())
    return failure();
  return found;
}

} // namespace shardc::torch_export
