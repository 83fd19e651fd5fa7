// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/nodes/core/NodeGroups.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

namespace {

using Order = NodeGroups::Order;

/// The positions of each node of a group, in order; nodes in the order in which they come.
std::vector<std::vector<size_t>> positionsByNode(std::span<const int64_t> group,
                                                 uint32_t ranksPerNode) {
  std::vector<int64_t> nodes;
  std::vector<std::vector<size_t>> positions;
  for (size_t position = 0; position != group.size(); ++position) {
    int64_t node = group[position] / ranksPerNode;
    auto it = std::find(nodes.begin(), nodes.end(), node);
    if (it == nodes.end()) {
      it = nodes.insert(nodes.end(), node);
      positions.emplace_back();
    }
    positions[it - nodes.begin()].push_back(position);
  }
  return positions;
}

Order orderOf(const std::vector<std::vector<size_t>> &positions) {
  size_t nodes = positions.size(), ranks = positions.front().size();
  bool byNode = true, byPlace = true;
  for (size_t node = 0; node != nodes; ++node)
    for (size_t place = 0; place != ranks; ++place) {
      byNode &= positions[node][place] == node * ranks + place;
      byPlace &= positions[node][place] == place * nodes + node;
    }
  return byNode ? Order::ByNode : byPlace ? Order::ByPlace : Order::Neither;
}

/// By the first rank of each, as groups are listed everywhere.
void sortGroups(std::vector<int64_t> &ranks, uint32_t size) {
  std::vector<std::vector<int64_t>> groups;
  for (size_t first = 0; first < ranks.size(); first += size)
    groups.emplace_back(ranks.begin() + static_cast<ptrdiff_t>(first),
                        ranks.begin() + static_cast<ptrdiff_t>(first + size));
  std::sort(groups.begin(), groups.end());
  ranks.clear();
  for (const std::vector<int64_t> &group : groups)
    ranks.insert(ranks.end(), group.begin(), group.end());
}

} // namespace

std::optional<NodeGroups> shardc::collectives::splitGroups(std::span<const int64_t> ranks,
                                                           uint32_t size, uint32_t ranksPerNode,
                                                           WhyFlat &why) {
  if (ranks.empty() || size == 0) {
    why = WhyFlat::UnknownRank;
    return std::nullopt;
  }
  NodeGroups split;
  bool oneNode = true, unequal = false;
  for (size_t first = 0; first < ranks.size(); first += size) {
    std::span<const int64_t> group = ranks.subspan(first, size);
    std::vector<std::vector<size_t>> positions = positionsByNode(group, ranksPerNode);
    size_t nodes = positions.size(), ranksOnNode = positions.front().size();
    oneNode &= nodes == 1 || nodes == size;
    for (const std::vector<size_t> &node : positions)
      unequal |= node.size() != ranksOnNode;
    if (first == 0) {
      split.nodes = nodes;
      split.ranksOnNode = ranksOnNode;
      split.order = unequal ? Order::Neither : orderOf(positions);
    }
    unequal |= nodes != split.nodes || ranksOnNode != split.ranksOnNode;
    if (unequal)
      continue;
    if (split.order != orderOf(positions))
      split.order = Order::Neither;
    for (const std::vector<size_t> &node : positions)
      for (size_t position : node)
        split.within.push_back(group[position]);
    for (size_t place = 0; place != ranksOnNode; ++place)
      for (const std::vector<size_t> &node : positions)
        split.between.push_back(group[node[place]]);
  }
  if (!oneNode && !unequal) {
    sortGroups(split.within, split.ranksOnNode);
    sortGroups(split.between, split.nodes);
  }
  why = oneNode ? WhyFlat::OneNode : unequal ? WhyFlat::Unequal : WhyFlat::Splits;
  return why == WhyFlat::Splits ? std::optional(std::move(split)) : std::nullopt;
}

bool shardc::collectives::mayReduceTwice(Reduction reduction, NumberClass numbers) {
  switch (reduction) {
  case Reduction::Min:
  case Reduction::Max:
    return true;
  case Reduction::Avg:
    return numbers != NumberClass::Integer;
  case Reduction::Sum:
  case Reduction::Prod:
    return numbers != NumberClass::Narrow;
  }
  return false;
}
