// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Defensive.h"

#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Simulate.h"

#include <algorithm>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

/// By task: the last node that it has to come after; 0 if there is none.
static std::vector<NodeId> lastBefore(const Problem &problem) {
  std::vector<NodeId> last(problem.numTasks(), 0);
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    for (const Dependence &d : problem.before[task]) {
      NodeId node = last[d.task]; // arithmetic comes when it can
      if (problem.isKernel(d.task))
        node = problem.nodeOf[d.task];
      else if (problem.isCollective(d.task))
        node = d.complete ? problem.waitOf[d.task] : problem.nodeOf[d.task];
      last[task] = std::max(last[task], node);
    }
  return last;
}

/// Whether a reduction is for whoever calls the program alone, such as that of a gradient.
static bool isReturned(const Problem &problem, TaskId task) {
  if (!problem.isCollective(task) || problem.waitOf[task] == none || !problem.after[task].empty() ||
      problem.graph.operands(problem.waitOf[task]).size() != 1)
    return false;
  CollectiveKind kind = problem.graph.kindOf(problem.nodeOf[task]);
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
}

/// The order of the program in which reductions of a group that are returned are in the places of
/// each other, by when their operands have been made. Nothing if that is the program's.
static std::optional<std::vector<NodeId>> orderOfProduction(const Problem &problem) {
  const Graph &graph = problem.graph;
  std::vector<std::vector<TaskId>> ofGroup(graph.numGroups());
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (isReturned(problem, task))
      ofGroup[graph.groupOf(problem.nodeOf[task])].push_back(task);
  std::vector<NodeId> last = lastBefore(problem);
  // By node: which one is there instead. A place is behind what the collective needs that had it,
  // hence also behind what the one needs that is as far down among those by their operands.
  std::vector<NodeId> instead(graph.numNodes());
  std::iota(instead.begin(), instead.end(), 0);
  bool changes = false;
  for (const std::vector<TaskId> &tasks : ofGroup) {
    std::vector<TaskId> made = tasks;
    std::sort(made.begin(), made.end(),
              [&](TaskId a, TaskId b) { return std::pair(last[a], a) < std::pair(last[b], b); });
    changes = changes || made != tasks;
    std::vector<NodeId> waits;
    for (TaskId task : tasks)
      waits.push_back(problem.waitOf[task]);
    std::sort(waits.begin(), waits.end());
    for (size_t i = 0; i != tasks.size(); ++i) {
      instead[problem.nodeOf[tasks[i]]] = problem.nodeOf[made[i]];
      instead[waits[i]] = problem.waitOf[made[i]];
    }
  }
  if (!changes)
    return std::nullopt;
  Plan plan;
  for (NodeId node : instead)
    if (!graph.isFree(node)) // these run when they are needed
      plan.items.push_back({PlanItem::Kind::Op, node});
  return nodeOrder(graph, plan);
}

/// An order of all nodes, with slack; `problem` is of the graph's own.
static std::optional<Decision> scheduleInOrder(const Problem &problem,
                                               std::span<const NodeId> order,
                                               const cost::CostModel &model,
                                               const SearchOptions &options) {
  const Graph &graph = problem.graph;
  Problem ordered(graph, order);
  if (MemoryTracker(ordered, UINT64_MAX, options.flat).basePeakBytes() > options.memoryLimit)
    return std::nullopt;
  Decision decision{{}, {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
  if (options.bucket) {
    FormOptions form;
    form.buckets = options.buckets;
    if (form.buckets.caps.isAuto())
      form.buckets.caps = BucketCaps({defensiveBucketBytes / (1 << 20)});
    form.memoryLimit = options.memoryLimit;
    form.flat = options.flat;
    FormResult formed = formBuckets(ordered, model, BucketKeys(ordered, form.buckets), form);
    decision = toDecision(ordered, {.plan = std::move(formed.plan),
                                    .closed = std::move(formed.closed),
                                    .capBytes = std::move(formed.capBytes),
                                    .alone = std::move(formed.alone)});
  } else {
    for (NodeId node : order)
      decision.plan.items.push_back({PlanItem::Kind::Op, node});
  }
  decision.plan =
      loosen(problem, decision.plan, {options.memoryLimit, options.flat, StartOrder::Kept});
  if (simulate(graph, decision.plan, model, {options.flat}).peakHoldBytes > options.memoryLimit)
    return std::nullopt;
  return decision;
}

std::optional<Decision> shardc::collectives::defensiveSchedule(const Problem &problem,
                                                               const cost::CostModel &model,
                                                               const SearchOptions &options) {
  if (std::optional<std::vector<NodeId>> order = orderOfProduction(problem))
    if (auto decision = scheduleInOrder(problem, *order, model, options))
      return decision;
  std::vector<NodeId> order(problem.graph.numNodes());
  std::iota(order.begin(), order.end(), 0);
  return scheduleInOrder(problem, order, model, options);
}
