// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ALLORDERS_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ALLORDERS_H

#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Problem.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/RandomGraph.h"

#include <gtest/gtest.h>

namespace shardc::collectives::test {

/// Tasks in this order, waits right behind their starts, where they free most.
inline Plan planInOrder(const Problem &problem, std::span<const TaskId> order) {
  Plan plan;
  for (TaskId task : order) {
    plan.items.push_back({PlanItem::Kind::Op, problem.nodeOf[task]});
    if (problem.waitOf[task] != none)
      plan.items.push_back({PlanItem::Kind::Op, problem.waitOf[task]});
  }
  return plan;
}

/// The least peak of all orders of tasks, for tiny programs.
class LeastPeak {
public:
  explicit LeastPeak(const Graph &graph) : graph(graph), problem(graph), done(problem.numTasks()) {}

  uint64_t find() {
    extend();
    return least;
  }

private:
  void extend() {
    if (order.size() == problem.numTasks()) {
      Plan plan = planInOrder(problem, order);
      ASSERT_EQ(checkPlan(graph, plan), "");
      least = std::min(least, simulate(graph, plan, model).peakHoldBytes);
      return;
    }
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      bool ready = !done[task];
      for (const Dependence &d : problem.before[task])
        ready &= done[d.task];
      if (!ready)
        continue;
      done[task] = true;
      order.push_back(task);
      extend();
      order.pop_back();
      done[task] = false;
    }
  }

  const Graph &graph;
  Problem problem;
  cost::SimV1 model;
  std::vector<bool> done;
  std::vector<TaskId> order;
  uint64_t least = UINT64_MAX;
};

/// Calls fn(problem, least peak of all its orders) for random programs of at most 8 tasks, at least
/// 100 of them; returns how many.
template <typename Fn> int forEachTinyProgram(Fn fn) {
  int count = 0;
  for (uint32_t seed = 0; seed != 250; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 40000, {8, 2, seed % 2 == 0});
    Problem problem(graph);
    if (problem.numTasks() > 8)
      continue;
    ++count;
    fn(problem, LeastPeak(graph).find());
  }
  EXPECT_GE(count, 100);
  return count;
}

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_ALLORDERS_H
