// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule that needs no times.
#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/ScaledModel.h"
#include "test/unit/passes/collectives/Layers.h"
#include "test/unit/passes/collectives/RandomGraph.h"
#include "test/unit/passes/collectives/RoundModel.h"

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::Builder;
using shardc::collectives::test::layers;
using shardc::collectives::test::RoundModel;

namespace {

TEST(Defensive, DependsOnNoTimes) {
  for (uint32_t seed = 0; seed != 60; ++seed) {
    Graph graph = test::randomGraph(seed);
    Problem problem(graph);
    RoundModel base;
    SearchOptions options;
    for (bool bucket : {false, true}) {
      options.bucket = bucket;
      options.memoryLimit = simulate(graph, base).peakHoldBytes;
      std::optional<Decision> plan = defensiveSchedule(problem, base, options);
      std::optional<Decision> slow =
          defensiveSchedule(problem, cost::ScaledModel(base, 10), options);
      ASSERT_EQ(plan.has_value(), slow.has_value());
      if (!plan)
        continue;
      EXPECT_EQ(checkPlan(graph, plan->plan), "");
      EXPECT_EQ(nodeOrder(graph, plan->plan), nodeOrder(graph, slow->plan));
      EXPECT_LE(simulate(graph, plan->plan, base).peakHoldBytes, options.memoryLimit);
    }
  }
}

TEST(Defensive, IsAPolicy) {
  Graph graph = layers(4, 100, 400);
  OptimizeOptions options;
  options.policy = SchedulingPolicy::Defensive;
  options.bucket = false;
  options.memoryLimit = 1 << 20;
  OptimizeResult result = optimize(graph, RoundModel(), options);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.candidates, 1u);
  // All four gathers run in a row, the kernels behind the last: 4 launches, 4 x 410, k3.
  EXPECT_DOUBLE_EQ(result.after.stepUs, 1 + 4 * 410 + 101);
  options.bucket = true;
  OptimizeResult merged = optimize(graph, RoundModel(), options);
  ASSERT_EQ(merged.buckets.size(), 1u);
  EXPECT_EQ(merged.buckets.front().members.size(), 4u);
  options.memoryLimit = 100;
  EXPECT_NE(optimize(graph, RoundModel(), options).error.find("cannot be met"), std::string::npos);
}

/// A backward that makes gradients from the last layer to the first, and then reduces them from the
/// first to the last, as a program lists its parameters.
Graph backward(int count, double us, uint64_t bytes, bool inPlace, bool isUsed = false) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId x = b.input(10);
  std::vector<ValueId> gradients;
  for (int i = count; i-- != 0;) {
    gradients.insert(gradients.begin(), b.kernel("dw" + std::to_string(i), {x}, us, bytes));
    x = b.kernel("dx" + std::to_string(i), {x}, us, 10);
  }
  std::vector<ValueId> reduced;
  for (int i = 0; i != count; ++i) {
    std::string name = std::to_string(i);
    ValueId sum = b.graph.addTensor(bytes);
    b.graph.addCollective({CollectiveKind::AllReduce, g, "sum", 0, {inPlace}}, "r" + name,
                          std::vector{gradients[i]}, std::vector{sum});
    reduced.push_back(b.wait("w" + name, sum));
  }
  if (isUsed)
    b.output(b.kernel("norm", reduced, us, 4));
  for (ValueId value : reduced)
    b.output(b.view("v" + std::to_string(value), value));
  return b.finish();
}

TEST(Defensive, ReturnedReductionsGoInTheOrderOfProduction) {
  // Each takes 110 us beside 202 us of kernels, so that all but the last are hidden.
  for (bool inPlace : {true, false}) {
    Graph graph = backward(6, 100, 100, inPlace);
    OptimizeOptions options;
    options.policy = SchedulingPolicy::Defensive;
    options.bucket = false;
    // In place nothing is held for it; otherwise one result beside each gradient, to the end.
    options.memoryLimit = simulate(graph, RoundModel()).peakHoldBytes + (inPlace ? 0 : 600);
    OptimizeResult result = optimize(graph, RoundModel(), options);
    ASSERT_EQ(result.error, "");
    EXPECT_LE(result.after.peakHoldBytes, *options.memoryLimit);
    // 12 kernels and 6 starts with a launch each. The last gradient is made by the last kernel but
    // one.
    EXPECT_DOUBLE_EQ(result.after.stepUs, 11 * 101 + 6 + 110);
    EXPECT_EQ(result.before.stepUs, 12 * 101 + 6 * (1 + 110));
    options.bucket = true;
    OptimizeResult merged = optimize(graph, RoundModel(), options);
    ASSERT_EQ(merged.error, "");
    EXPECT_LE(merged.after.peakHoldBytes, *options.memoryLimit);
  }
  // What a kernel reads keeps the order of the program.
  Graph used = backward(6, 100, 100, true, /*isUsed=*/true);
  Problem problem(used);
  SearchOptions options;
  options.bucket = false;
  std::optional<Decision> kept = defensiveSchedule(problem, RoundModel(), options);
  ASSERT_TRUE(kept);
  std::vector<std::string> starts;
  for (const PlanItem &item : kept->plan.items)
    if (used.isCollective(item.id))
      starts.push_back(used.nameOf(item.id));
  EXPECT_EQ(starts, (std::vector<std::string>{"r0", "r1", "r2", "r3", "r4", "r5"}));
}

/// Whatever is moved: a schedule is valid, and there is one wherever the program fits.
TEST(Defensive, ThereIsOneWhereverTheProgramFits) {
  unsigned moved = 0, refused = 0;
  for (uint32_t seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = test::randomGraph(seed + 700, {20 + seed % 60, 1 + seed % 3, seed % 2 == 0});
    Problem problem(graph);
    for (bool flat : {false, true}) {
      uint64_t peak = MemoryTracker(problem, UINT64_MAX, flat).basePeakBytes();
      SearchOptions options;
      options.flat = flat;
      options.bucket = false;
      for (uint64_t limit : {peak, peak + peak / 2}) {
        options.memoryLimit = limit;
        std::optional<Decision> made = defensiveSchedule(problem, RoundModel(), options);
        ASSERT_TRUE(made);
        EXPECT_EQ(checkPlan(graph, made->plan), "");
        EXPECT_LE(simulate(graph, made->plan, RoundModel(), {flat}).peakHoldBytes, limit);
        std::vector<NodeId> starts;
        for (const PlanItem &item : made->plan.items)
          if (graph.isCollective(item.id))
            starts.push_back(item.id);
        moved += !std::ranges::is_sorted(starts);
      }
      options.memoryLimit = peak - 1; // another order of reductions may take less
      if (std::optional<Decision> made = defensiveSchedule(problem, RoundModel(), options))
        EXPECT_LT(simulate(graph, made->plan, RoundModel(), {flat}).peakHoldBytes, peak);
      else
        ++refused;
    }
  }
  EXPECT_GT(moved, 50u);
  EXPECT_GT(refused, 300u);
}

/// Without a limit there is room for collectives ahead, which is taken where that makes the step a
/// percent shorter.
TEST(Defensive, RoomForCollectivesAheadIsTakenWhereItPays) {
  OptimizeOptions options;
  options.policy = SchedulingPolicy::Defensive;
  options.bucket = false;
  options.ahead = 2;
  Graph graph = layers(4, 100, 40);
  OptimizeResult result = optimize(graph, RoundModel(), options);
  ASSERT_EQ(result.error, "");
  EXPECT_EQ(result.candidates, 2u);
  // All gathers of 50 us but the first are hidden behind kernels of 100.
  EXPECT_DOUBLE_EQ(result.before.stepUs, 4 * (1 + 50 + 101));
  EXPECT_LE(result.after.stepUs, 50 + 4 * 101 + 4);
  EXPECT_LE(result.after.peakHoldBytes, result.before.peakHoldBytes + 2 * 40);
  EXPECT_GT(result.after.peakHoldBytes, result.before.peakHoldBytes + 2);
  // In kernels of 0.1 s they are a part of a thousand.
  Graph slow = layers(4, 100000, 40);
  OptimizeResult lean = optimize(slow, RoundModel(), options);
  ASSERT_EQ(lean.error, "");
  EXPECT_LE(lean.after.peakHoldBytes, lean.before.peakHoldBytes + lean.before.peakHoldBytes / 50);
}

} // namespace
