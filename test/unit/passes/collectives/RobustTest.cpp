// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays under other times, and the choice of a plan for all of them.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/RangeMaxTree.h"
#include "passes/cost/core/ScaledModel.h"
#include "test/unit/passes/collectives/Layers.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"

#include <cmath>
#include <random>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::layers;
using shardc::collectives::test::RoundModel;

namespace {

constexpr auto AG = CollectiveKind::AllGather;

TEST(RangeMaxTree, NearestAboveIsThatOfAList) {
  std::mt19937 random(1);
  for (int round = 0; round != 500; ++round) {
    std::vector<int64_t> list(1 + random() % 20);
    for (int64_t &value : list)
      value = random() % 50;
    RangeMaxTree tree(list);
    uint32_t n = list.size();
    for (int step = 0; step != 30; ++step) {
      uint32_t begin = random() % (n + 1), end = random() % (n + 1), at = random() % (n + 2);
      int64_t delta = int64_t(random() % 21) - 10, value = random() % 50;
      tree.add(begin, end, delta);
      for (uint32_t i = begin; i < end; ++i)
        list[i] += delta;
      uint32_t first = at, last = std::min(at, n);
      while (first < n && list[first] <= value)
        ++first;
      while (last != 0 && list[last - 1] <= value)
        --last;
      EXPECT_EQ(tree.firstAbove(at, value), first < n ? first : RangeMaxTree::nowhere);
      EXPECT_EQ(tree.lastAbove(at, value), last != 0 ? last - 1 : RangeMaxTree::nowhere);
    }
  }
}

TEST(Replay, ANetworkIsThatOfAScaledModel) {
  for (uint32_t seed = 0; seed != 100; ++seed) {
    Graph graph = test::randomGraph(seed);
    OptimizeResult result = optimize(graph, RoundModel());
    Replay replay(graph, result.plan, RoundModel());
    for (double network : {1.0, 1.25, 2.0, 0.5}) {
      RoundModel base;
      Figures figures = simulate(graph, result.plan, cost::ScaledModel(base, network));
      EXPECT_NEAR(replay.stepUs({"", network, none, 0, 0}), figures.stepUs, 1e-9 * figures.stepUs);
    }
  }
}

TEST(Replay, JitterIsThatOfSplitmix64) {
  // The first number of the generator that starts at 0, as others publish it.
  Scenario scenario{"", 1, none, 0.5, 0};
  auto factorOf = [](uint64_t number) {
    return 1 + 0.5 * (std::ldexp(double(number >> 11), -52) - 1);
  };
  EXPECT_DOUBLE_EQ(kernelFactor(scenario, 0), factorOf(0xe220a8397b1dcdaf));
  scenario.jitter = 0;
  EXPECT_EQ(kernelFactor(scenario, 0), 1);
  // Factors are from the whole range, and on average none.
  for (uint32_t seed : {1, 2, 101}) {
    scenario = {"", 1, none, 0.2, seed};
    double sum = 0, least = 2, most = 0;
    for (NodeId kernel = 0; kernel != 10000; ++kernel) {
      double factor = kernelFactor(scenario, kernel);
      sum += factor;
      least = std::min(least, factor);
      most = std::max(most, factor);
    }
    EXPECT_NEAR(sum / 10000, 1, 0.004);
    EXPECT_NEAR(least, 0.8, 0.001);
    EXPECT_NEAR(most, 1.2, 0.001);
    EXPECT_GE(least, 0.8);
    EXPECT_LE(most, 1.2);
  }
}

TEST(Replay, JitterAndStragglers) {
  Builder b;
  GroupId g = b.group("g", 2), h = b.group("h", 2);
  ValueId x = b.run("a", AG, g, b.input(50), 90);
  ValueId y = b.run("b", AG, h, b.kernel("k", {x}, 1000, 50), 190);
  b.output(y);
  Graph graph = b.finish();
  Replay replay(graph, identityPlan(graph), RoundModel());
  // Launches 3, the gathers 100 and 200, the kernel 1000.
  EXPECT_DOUBLE_EQ(replay.stepUs({}), 1303);
  EXPECT_DOUBLE_EQ(replay.stepUs({"", 2, g, 0, 0}), 1403);
  EXPECT_DOUBLE_EQ(replay.stepUs({"", 2, h, 0, 0}), 1503);
  double one = replay.stepUs({"", 1, none, 0.2, 1}), two = replay.stepUs({"", 1, none, 0.2, 2});
  EXPECT_NE(one, two);
  for (double step : {one, two}) {
    EXPECT_GE(step, 1103);
    EXPECT_LE(step, 1503);
  }
  std::vector<double> slack = replay.slackUs(graph.numNodes());
  EXPECT_DOUBLE_EQ(slack[test::nodeNamed(graph, "a")], -100);
  EXPECT_DOUBLE_EQ(slack[test::nodeNamed(graph, "b")], -200);
  EXPECT_TRUE(std::isinf(slack[test::nodeNamed(graph, "k")]));
  // Two groups communicate: each may have a straggler.
  std::vector<Scenario> scenarios = standardScenarios(graph, RoundModel());
  EXPECT_EQ(scenarios.front().name, "nominal");
  EXPECT_EQ(scenarios[scenarios.size() - 2].name, "straggler on h");
  EXPECT_EQ(scenarios.back().name, "straggler on g");
}

/// Where gathers fill half of the time of the kernels: on a network that is twice as slow the plan
/// still hides all but the first of them, whatever it was made for.
TEST(Robust, WhatCouldBeHiddenStaysHidden) {
  Graph graph = layers(16, 100, 40);
  OptimizeOptions options;
  options.bucket = false;
  options.memoryLimit = 1 << 20;
  Scenario slow{"", 2, none, 0, 0};
  OptimizeResult result = optimize(graph, RoundModel(), options);
  ASSERT_EQ(result.error, "");
  // The first gather, and 32 launches at most on top of the kernels.
  EXPECT_LE(Replay(graph, result.plan, RoundModel()).stepUs(slow), 100 + 1600 + 32);
}

/// The nominal step is never given away for more than was asked, and with nothing asked it is not
/// longer than that of the search.
TEST(Robust, NominalCostIsBounded) {
  for (uint32_t seed = 0; seed != 120; ++seed) {
    SCOPED_TRACE(seed);
    test::RandomShape shape;
    shape.nodes = 40 + seed % 60;
    Graph graph = test::randomGraph(seed, shape);
    OptimizeOptions options;
    options.robust = 0;
    OptimizeResult nominal = optimize(graph, RoundModel(), options);
    ASSERT_EQ(nominal.error, "");
    SearchOptions search;
    search.memoryLimit = nominal.memoryLimit;
    SearchResult plain = searchSchedules(graph, RoundModel(), search);
    ASSERT_TRUE(plain.best);
    double shortest = simulate(graph, plain.best->plan, RoundModel()).stepUs;
    EXPECT_LE(nominal.after.stepUs, shortest * (1 + 1e-9));
    for (double robust : {0.25, 0.5, 1.0}) {
      options.robust = robust;
      OptimizeResult result = optimize(graph, RoundModel(), options);
      ASSERT_EQ(result.error, "");
      EXPECT_LE(result.after.stepUs, shortest * (1 + robust * largestNominalCost + 1e-6));
    }
  }
}

} // namespace
