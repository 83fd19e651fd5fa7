// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/DelayWaits.h"

#include <deque>

using namespace shardc;
using namespace shardc::collectives;

/// By collective: whether all that becomes of its results is that they are waited for, once.
static std::vector<bool> findReturned(const Graph &graph) {
  std::vector<uint32_t> uses(graph.numValues());
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    for (ValueId operand : graph.operands(node))
      ++uses[operand];
  std::vector<bool> returned(graph.numNodes(), false);
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node))
      returned[node] = std::ranges::all_of(graph.results(node),
                                           [&](ValueId result) { return uses[result] == 1; });
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    for (ValueId operand : graph.operands(node)) {
      NodeId collective = graph.pendingOf(operand);
      if (collective == none)
        continue;
      bool isUsed = std::ranges::any_of(graph.results(node),
                                        [&](ValueId result) { return uses[result] != 0; });
      if (graph.classOf(node) != NodeClass::Wait || isUsed)
        returned[collective] = false;
    }
  return returned;
}

Plan shardc::collectives::delayWaits(const Graph &graph, const Plan &plan, size_t distance) {
  std::vector<bool> returned = findReturned(graph);
  auto mayMove = [&](const PlanItem &item) {
    if (item.kind == PlanItem::Kind::Wait) {
      const std::vector<NodeId> &members = plan.buckets[item.id];
      return std::ranges::all_of(members, [&](NodeId member) { return returned[member]; });
    }
    if (item.kind != PlanItem::Kind::Op || graph.classOf(item.id) != NodeClass::Wait)
      return false;
    std::span<const ValueId> operands = graph.operands(item.id);
    return !operands.empty() && std::ranges::all_of(operands, [&](ValueId operand) {
      NodeId collective = graph.pendingOf(operand);
      return collective != none && returned[collective];
    });
  };
  Plan delayed;
  delayed.buckets = plan.buckets;
  delayed.items.reserve(plan.items.size());
  std::deque<PlanItem> waits;
  std::vector<bool> isDelayed(plan.buckets.size(), false);
  auto emit = [&] {
    PlanItem item = waits.front();
    delayed.items.push_back(item);
    waits.pop_front();
    if (item.kind != PlanItem::Kind::Wait ||
        !needsUnpack(graph.kindOf(plan.buckets[item.id].front())))
      return;
    item.kind = PlanItem::Kind::Unpack;
    delayed.items.push_back(item);
  };
  for (const PlanItem &item : plan.items) {
    // What is unpacked goes with the wait.
    if (item.kind == PlanItem::Kind::Unpack && isDelayed[item.id])
      continue;
    if (!mayMove(item)) {
      delayed.items.push_back(item);
      continue;
    }
    if (item.kind == PlanItem::Kind::Wait)
      isDelayed[item.id] = true;
    waits.push_back(item);
    if (waits.size() > distance)
      emit();
  }
  while (!waits.empty())
    emit();
  return delayed;
}
