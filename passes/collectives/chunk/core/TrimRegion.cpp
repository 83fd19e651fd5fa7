// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/TrimRegion.h"

using namespace shardc;
using namespace shardc::collectives;

bool RegionTrimmer::isUsedOutside(ValueId value, const std::set<NodeId> &inside) const {
  return returned[value] || std::any_of(users[value].begin(), users[value].end(),
                                        [&](NodeId user) { return !inside.contains(user); });
}

/// Gives up what only makes more to put together.
void RegionTrimmer::trim(std::set<NodeId> &inside) const {
  for (auto it = region.nodes.rbegin(); it != region.nodes.rend(); ++it) {
    NodeId node = *it;
    if (!inside.contains(node))
      continue;
    NodeClass nodeClass = graph.classOf(node);
    if (nodeClass == NodeClass::Wait || nodeClass == NodeClass::Collective || isProduct(node))
      continue;
    uint64_t with = 0, without = 0;
    bool isLast = true;
    for (ValueId result : graph.results(node)) {
      for (ValueId user : users[result])
        isLast &= !inside.contains(user);
      with += isUsedOutside(result, inside) ? graph.bytesOf(result) : 0;
    }
    for (ValueId operand : graph.operands(node))
      if (region.made.contains(operand) && !isUsedOutside(operand, inside))
        without += graph.bytesOf(operand);
    // A kernel that makes as much may be one with what makes its operand.
    if (isLast && (without < with || (without == with && !graph.isKernel(node)) || without == 0))
      inside.erase(node);
  }
}

bool RegionTrimmer::isReadInside(NodeId node, const std::set<NodeId> &inside,
                                 const std::set<NodeId> &gone) const {
  for (ValueId result : graph.results(node))
    for (NodeId user : users[result])
      if (inside.contains(user) && !gone.contains(user))
        return true;
  return false;
}

double RegionTrimmer::joinUs(ValueId value) const {
  return (region.ring && !region.ring->sums.contains(value) ? 2 : 1) * copyUs(graph, model, value);
}

/// Gives up last products, and the collectives that only they wait for, where to put together
/// what they make takes longer than those collectives. Returns whether there was one.
bool RegionTrimmer::trimProducts(std::set<NodeId> &inside) const {
  bool changed = false;
  for (auto it = region.nodes.rbegin(); it != region.nodes.rend(); ++it) {
    if (!inside.contains(*it) || !isProduct(*it) || isReadInside(*it, inside))
      continue;
    double saved = 0, kernels = 0;
    std::set<NodeId> gone;
    std::vector<NodeId> stack = {*it};
    while (!stack.empty()) {
      NodeId node = stack.back();
      stack.pop_back();
      if (!inside.contains(node) || gone.contains(node) || isReadInside(node, inside, gone))
        continue;
      gone.insert(node);
      if (isProduct(node))
        kernels += graph.durationUs(node);
      if (graph.isCollective(node)) {
        saved += model.collectiveUs(graph.kindOf(node), graph.group(graph.groupOf(node)).shape(),
                                    graph.fullBytes(node));
        continue; // what comes before it is not waited for here
      }
      for (ValueId operand : graph.operands(node))
        if (region.made.contains(operand) && !isProduct(graph.producerOf(operand)))
          stack.push_back(graph.producerOf(operand));
    }
    double joins = 0;
    for (NodeId node : gone) {
      for (ValueId result : graph.results(node))
        joins += isUsedOutside(result, inside) ? joinUs(result) : 0;
      for (ValueId operand : graph.operands(node))
        if (region.made.contains(operand) && !gone.contains(graph.producerOf(operand)) &&
            !isUsedOutside(operand, inside))
          joins -= joinUs(operand);
    }
    // Without a collective it is there for others to overlap with.
    if (saved == 0 || joins <= std::min(saved, kernels))
      continue;
    for (NodeId node : gone)
      inside.erase(node);
    changed = true;
  }
  return changed;
}

std::set<NodeId> RegionTrimmer::run() const {
  std::set<NodeId> inside(region.nodes.begin(), region.nodes.end());
  do
    trim(inside);
  while (trimProducts(inside));
  return inside;
}
