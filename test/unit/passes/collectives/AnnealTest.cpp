// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Changes of plans that lead through worse ones.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Refine.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/UnseenGraphs.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

TEST(Refine, AnnealingLeadsThroughWorsePlans) {
  // From plans that no single change makes better.
  cost::SimV1 model;
  unsigned better = 0;
  for (uint32_t seed = 0; seed != 10; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = test::unseenGraph(test::unseenFamilies[seed], seed, 60);
    Problem problem(graph);
    std::vector<Scenario> scenarios = standardScenarios(graph, model);
    Badness mean = [](std::span<const double> steps) {
      return std::accumulate(steps.begin(), steps.end(), 0.0) / 1e6;
    };
    auto badnessOf = [&](const Decision &of) {
      return mean(Replay(graph, of.plan, model).stepsUs(scenarios));
    };
    Decision start{identityPlan(graph), {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
    uint64_t limit = simulate(graph, start.plan, model).peakHoldBytes;
    auto run = [&](const Decision &from, double heat) {
      RefineOptions options{.memoryLimit = limit, .tries = 40000, .events = 1000000, .heat = heat};
      return refine(problem, BucketKeys(problem, {}), model, from, scenarios, mean, options);
    };
    while (std::optional<Decision> next = run(start, 0))
      start = std::move(*next);
    std::optional<Decision> made = run(start, badnessOf(start) / 50);
    if (!made)
      continue;
    ++better;
    EXPECT_EQ(checkPlan(graph, made->plan), "");
    EXPECT_LE(simulate(graph, made->plan, model).peakHoldBytes, limit);
    EXPECT_LT(badnessOf(*made), badnessOf(start));
    EXPECT_EQ(nodeOrder(graph, made->plan),
              nodeOrder(graph, run(start, badnessOf(start) / 50)->plan));
  }
  EXPECT_GE(better, 3u);
}
