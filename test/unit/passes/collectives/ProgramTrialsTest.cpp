// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/ProgramTrials.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"

#include <gtest/gtest.h>

#include <random>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::RoundModel;

namespace {

const RoundModel model;

/// A kernel of so many microseconds.
Graph alone(double us) {
  Builder b;
  b.output(b.kernel("k", {b.input(10)}, us, 10));
  return b.finish();
}

TEST(ProgramTrials, TheProgramIsScheduledAsItWillBe) {
  // Robust plans differ on some of these graphs, so that it would be noticed if others were made.
  unsigned differ = 0;
  for (uint32_t seed = 0; seed != 100; ++seed) {
    Graph graph = test::randomGraph(seed);
    std::vector<double> steps;
    for (double robust : {0.5, 0.0}) {
      OptimizeOptions options;
      options.robust = robust;
      ProgramTrials trials(graph, model, options, 0.01);
      EXPECT_EQ(trials.stepBeforeUs(), 0);
      ASSERT_TRUE(trials.begin());
      OptimizeResult result = optimize(graph, model, options);
      EXPECT_EQ(trials.stepBeforeUs(), result.after.stepUs) << seed;
      EXPECT_EQ(trials.stepAfterUs(), result.after.stepUs) << seed;
      EXPECT_EQ(trials.best(), std::nullopt);
      for (const AloneRecord &record : result.alone)
        EXPECT_EQ(trials.exposedUs(record.node), record.exposedAfterUs);
      for (const BucketRecord &bucket : result.buckets)
        for (NodeId member : bucket.members)
          EXPECT_EQ(trials.exposedUs(member), bucket.exposedAfterUs);
      steps.push_back(result.after.stepUs);
    }
    differ += steps[0] != steps[1];
  }
  EXPECT_GT(differ, 0u);
}

TEST(ProgramTrials, AVariantMustSaveItsPartOfTheStep) {
  for (double robust : {0.0, 0.5, 1.0}) {
    SCOPED_TRACE(robust);
    OptimizeOptions options;
    options.robust = robust;
    Graph graph = alone(1000);
    ProgramTrials trials(graph, model, options, 0.01);
    ASSERT_TRUE(trials.begin());
    double step = trials.stepBeforeUs();
    auto saving = [&](double us) { return alone(1000 - us); };
    trials.add(saving(0.009 * step));
    EXPECT_EQ(trials.best(), std::nullopt);
    EXPECT_EQ(trials.stepAfterUs(), step);
    trials.add(saving(0.02 * step));
    EXPECT_EQ(trials.best(), 1u);
    // Of equally good ones the first is taken, and of others the best.
    trials.add(saving(0.02 * step));
    trials.add(saving(0.015 * step));
    EXPECT_EQ(trials.best(), 1u);
    trials.add(saving(0.021 * step));
    EXPECT_EQ(trials.best(), 4u);
    EXPECT_NEAR(trials.stepAfterUs(), 0.979 * step, 1e-9 * step);
    EXPECT_EQ(trials.stepBeforeUs(), step);
    EXPECT_EQ(trials.count(), 6u);
  }
}

/// A step that has so many microseconds of kernels and of communication, which nothing hides.
Graph exposing(double kernelUs, uint64_t bytes) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.kernel("k", {b.input(1)}, kernelUs, bytes);
  b.output(b.run("r", CollectiveKind::AllReduce, g, x, bytes, "sum"));
  return b.finish();
}

TEST(ProgramTrials, SlowerNetworksCount) {
  // 10012 us, of which 5000 are communication; twice as slow, 15012.
  Graph graph = exposing(5000, 4990);
  auto bestOf = [&](double robust, std::vector<Graph> variants) {
    OptimizeOptions options;
    options.robust = robust;
    options.memoryLimit = 1 << 20;
    ProgramTrials trials(graph, model, options, 0.01);
    EXPECT_TRUE(trials.begin());
    for (const Graph &variant : variants)
      trials.add(variant);
    return trials.best();
  };
  auto one = [](Graph variant) {
    std::vector<Graph> list;
    list.push_back(std::move(variant));
    return list;
  };
  // As long on nominal times, 2000 us less where the network is twice as slow.
  EXPECT_EQ(bestOf(0.5, one(exposing(7000, 2990))), 0u);
  EXPECT_EQ(bestOf(0, one(exposing(7000, 2990))), std::nullopt);
  // Half a percent longer on nominal times is what `robust` allows, and not more.
  EXPECT_EQ(bestOf(0.5, one(exposing(7040, 2990))), 0u);
  EXPECT_EQ(bestOf(0.5, one(exposing(7060, 2990))), std::nullopt);
  EXPECT_EQ(bestOf(1, one(exposing(7060, 2990))), 0u);
  // 2 % shorter on nominal times, but 1500 us longer where it is twice as slow.
  EXPECT_EQ(bestOf(0, one(exposing(3300, 6490))), 0u);
  EXPECT_EQ(bestOf(0.5, one(exposing(3300, 6490))), std::nullopt);
}

/// Against the formula, written out for steps that are known.
TEST(ProgramTrials, TheBestIsTheOneWithTheLeastRegret) {
  std::mt19937 random(1);
  unsigned taken = 0, other = 0;
  for (int round = 0; round != 60; ++round) {
    SCOPED_TRACE(round);
    double robust = random() % 5 / 4.0;
    std::vector<std::pair<double, double>> parts; // kernel and communication
    for (int i = 0; i != 5; ++i) {
      double us = 100 + random() % 400;
      parts.push_back({1000 - us + random() % 30, us});
    }
    const double networks[] = {1, 1.25, 1.5, 2};
    auto stepOf = [&](auto &part, double network) {
      return part.first + 2 + network * part.second;
    };
    double least[4];
    for (int n = 0; n != 4; ++n) {
      least[n] = 1e9;
      for (auto &part : parts)
        least[n] = std::min(least[n], stepOf(part, networks[n]));
    }
    auto scoreOf = [&](auto &part) {
      double worst = 0, mean = 0;
      for (int n = 0; n != 4; ++n) {
        double regret = stepOf(part, networks[n]) / least[n] - 1;
        worst = std::max(worst, regret);
        mean += regret / 4;
      }
      return (1 - robust) * (stepOf(part, 1) / least[0] - 1) + robust * (worst + mean) / 2;
    };
    std::optional<size_t> expected;
    double best = (1 + scoreOf(parts[0])) * 0.99 - 1;
    size_t shortest = 0;
    for (size_t i = 1; i != parts.size(); ++i) {
      if (stepOf(parts[i], 1) < stepOf(parts[shortest], 1))
        shortest = i;
      if (stepOf(parts[i], 1) <= least[0] * (1 + 0.01 * robust) && scoreOf(parts[i]) < best) {
        best = scoreOf(parts[i]);
        expected = i - 1;
      }
    }
    OptimizeOptions options;
    options.robust = robust;
    options.memoryLimit = 1 << 20;
    Graph program = exposing(parts[0].first, parts[0].second - 10);
    ProgramTrials trials(program, model, options, 0.01);
    ASSERT_TRUE(trials.begin());
    for (auto &part : std::span(parts).subspan(1))
      trials.add(exposing(part.first, part.second - 10));
    EXPECT_EQ(trials.best(), expected);
    taken += expected.has_value();
    other += expected && *expected + 1 != shortest;
  }
  EXPECT_GT(taken, 20u);
  EXPECT_GT(other, 5u);
}

/// A kernel that makes so many bytes, which another one reads.
Graph making(uint64_t bytes, double us) {
  Builder b;
  ValueId x = b.kernel("make", {b.input(10)}, us, bytes);
  b.output(b.kernel("read", {x}, us, 10));
  return b.finish();
}

TEST(ProgramTrials, VariantsKeepToTheLimitOfTheProgram) {
  Graph graph = making(1000, 100), large = making(1000000, 50), small = making(1000, 90);
  ProgramTrials trials(graph, model, {}, 0);
  ASSERT_TRUE(trials.begin());
  OptimizeResult free = optimize(large, model, {});
  ASSERT_TRUE(free.error.empty());
  EXPECT_LT(free.after.stepUs, trials.stepBeforeUs());
  trials.add(large);
  EXPECT_EQ(trials.best(), std::nullopt);
  trials.add(small);
  EXPECT_EQ(trials.best(), 1u);
}

} // namespace
