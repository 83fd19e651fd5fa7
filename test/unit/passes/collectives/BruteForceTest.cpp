// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiny programs against all their orders.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/Problem.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/RandomGraph.h"

#include <limits>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::randomGraph;

namespace {

/// All orders of kernels and starts; a wait is where it is first needed.
class AllOrders {
public:
  AllOrders(const Graph &graph, const cost::CostModel &model)
      : graph(graph), model(model), problem(graph), state(problem.numTasks()),
        end(problem.numTasks()), free(graph.numGroups()) {}

  double shortest() {
    extend(0, 0);
    return best;
  }
  uint64_t orders = 0;

private:
  void extend(size_t count, double now) {
    if (now >= best)
      return;
    if (count == problem.numTasks()) {
      ++orders;
      double step = now;
      for (double us : free)
        step = std::max(step, us);
      for (TaskId task = 0; task != problem.numTasks(); ++task)
        if (problem.isCollective(task) && problem.waitOf[task] != none)
          step = std::max(step, end[task]);
      best = std::min(best, step);
      return;
    }
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      double begin = now;
      if (state[task] || !canRun(task, begin))
        continue;
      NodeId node = problem.nodeOf[task];
      state[task] = true;
      if (problem.isCollective(task)) {
        GroupId group = graph.groupOf(node);
        double saved = free[group];
        begin += model.launchUs();
        end[task] = free[group] = std::max(begin, saved) +
                                  model.collectiveUs(graph.kindOf(node), graph.group(group).shape(),
                                                     graph.fullBytes(node));
        extend(count + 1, begin);
        free[group] = saved;
      } else {
        extend(count + 1,
               begin + (problem.isKernel(task) ? model.launchUs() + graph.durationUs(node) : 0));
      }
      state[task] = false;
    }
  }

  bool canRun(TaskId task, double &begin) const {
    for (const Dependence &d : problem.before[task]) {
      if (!state[d.task])
        return false;
      if (d.complete)
        begin = std::max(begin, end[d.task]);
    }
    return true;
  }

  const Graph &graph;
  const cost::CostModel &model;
  Problem problem;
  std::vector<bool> state;
  std::vector<double> end, free;
  double best = std::numeric_limits<double>::infinity();
};

TEST(BruteForce, SchedulesOfTinyProgramsAreNearlyTheBest) {
  cost::SimV1 model;
  double sum = 0, worst = 0;
  int count = 0, optimal = 0;
  for (uint32_t seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 70000, {9, 2, seed % 2 == 0});
    if (Problem(graph).numTasks() > 9)
      continue;
    OptimizeOptions options;
    options.bucket = false;
    options.memoryLimit = UINT64_MAX;
    OptimizeResult result = optimize(graph, model, options);
    ASSERT_EQ(result.error, "");
    AllOrders all(graph, model);
    double best = all.shortest();
    ASSERT_GE(result.after.stepUs, best - 1e-6);
    double ratio = best == 0 ? 1 : result.after.stepUs / best;
    sum += ratio;
    worst = std::max(worst, ratio);
    optimal += ratio < 1 + 1e-9;
    ++count;
  }
  ASSERT_GE(count, 100);
  EXPECT_LE(sum / count, 1.002);
  EXPECT_LE(worst, 1.1);
  EXPECT_GE(optimal, count * 9 / 10);
  std::printf("%d programs: mean %.4f, worst %.4f of the best order, %d optimal\n", count,
              sum / count, worst, optimal);
}

} // namespace
