// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties that hold for any graph and any options: plans are valid, keep to the memory limit,
// and cost what the scheduler thought.
#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/ListScheduler.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/RandomGraph.h"

#include <limits>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::randomGraph;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(RandomPlans, OptimisedPlansAreValidAndKeepTheirPromises) {
  cost::SimV1 model;
  for (uint32_t seed = 0; seed != 400; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed, {20 + seed % 100, 1 + seed % 4, seed % 5 != 0});
    OptimizeOptions options;
    options.bucket = seed % 7 != 0;
    options.schedule = seed % 3 != 0;
    options.flat = seed % 4 == 1;
    options.buckets.mixedDtype = seed % 2;
    if (seed % 6 == 2)
      options.buckets.caps = BucketCaps({0.25, 1});
    uint64_t peak = simulate(graph, model).peakHoldBytes;
    options.memoryLimit = peak + peak * (seed % 10) / 40;
    OptimizeResult result = optimize(graph, model, options);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(checkPlan(graph, result.plan, {options.buckets.mixedDtype}), "");
    if (options.schedule || options.bucket)
      EXPECT_LE(result.after.peakHoldBytes, *options.memoryLimit);
    if (options.schedule)
      EXPECT_LE(result.after.stepUs, result.before.stepUs + 1e-6);
    EXPECT_LE(result.afterFlat.stepUs, result.after.stepUs + 1e-6);
    for (const BucketRecord &bucket : result.buckets) {
      EXPECT_LE(bucket.bytes, bucket.capBytes);
      EXPECT_GE(bucket.members.size(), 2u);
    }
    // The same again, and the order that it unrolls to is a plan without buckets.
    EXPECT_EQ(optimize(graph, model, options).after.stepUs, result.after.stepUs);
    Plan unrolled;
    for (NodeId node : nodeOrder(graph, result.plan))
      unrolled.items.push_back({PlanItem::Kind::Op, node});
    EXPECT_EQ(checkPlan(graph, unrolled), "");
  }
}

TEST(RandomPlans, SchedulerAndSimulatorAgree) {
  cost::SimV1 model;
  int equal = 0;
  for (uint32_t seed = 1000; seed != 1300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed, {30 + seed % 90, 1 + seed % 3, seed % 2 == 0});
    Problem problem(graph);
    TaskTimes times(problem, model);
    ProgramTimes program(problem, times);
    BucketOptions buckets;
    BucketKeys keys(problem, buckets);
    bool flat = seed % 5 == 0;
    uint64_t base = MemoryTracker(problem, UINT64_MAX, flat).basePeakBytes();
    uint64_t limit = base + base * (seed % 4) / 8;
    Reference reference = makeReference(
        problem, times, seed % 2 ? ReferenceKind::Program : ReferenceKind::LongestPath);
    SchedulePolicy policy{&reference,
                          seed % 3 ? 100.0 : infinity,
                          50,
                          seed % 4 ? infinity : 200,
                          seed % 5 ? infinity : 300,
                          seed % 6 != 0,
                          1000,
                          100};
    ScheduleResult result =
        listSchedule({problem, times, program, model, keys, buckets, limit, flat}, policy);
    ASSERT_EQ(checkPlan(graph, result.plan), "");
    Figures figures = simulate(graph, result.plan, model, {flat});
    // The scheduler may let time pass for the sake of a bucket where the program need not.
    EXPECT_LE(figures.stepUs, result.stepUs * (1 + 1e-9));
    equal += figures.stepUs >= result.stepUs * (1 - 1e-9);
    EXPECT_EQ(figures.peakHoldBytes, result.peakBytes);
    EXPECT_LE(result.peakBytes, limit);
  }
  EXPECT_GE(equal, 290);
}

TEST(RandomPlans, BaseOrderPeaksLikeTheSimulator) {
  cost::SimV1 model;
  for (uint32_t seed = 0; seed != 200; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 5000, {60, 2, true});
    Problem problem(graph);
    Plan plan; // free nodes run when they are needed
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      if (!graph.isFree(node))
        plan.items.push_back({PlanItem::Kind::Op, node});
    EXPECT_EQ(MemoryTracker(problem, UINT64_MAX, false).basePeakBytes(),
              simulate(graph, plan, model).peakHoldBytes);
  }
}

TEST(RandomPlans, MoreMemoryIsNeverSlower) {
  cost::SimV1 model;
  for (uint32_t seed = 0; seed != 40; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 9000, {150, 2, true});
    uint64_t peak = simulate(graph, model).peakHoldBytes;
    // What is given away for other times is at most 1 %.
    for (double robust : {0.0, defaultRobust}) {
      double last = infinity;
      for (int percent = 100; percent <= 220; percent += 12) {
        OptimizeOptions options;
        options.memoryLimit = peak / 100 * percent + peak % 100;
        options.robust = robust;
        double step = optimize(graph, model, options).after.stepUs;
        EXPECT_LE(step, last * (robust == 0 ? 1 + 1e-12 : 1.01)) << percent;
        last = step;
      }
    }
  }
}

TEST(RandomPlans, LimitsThatCannotBeMetAreErrors) {
  cost::SimV1 model;
  Graph graph = randomGraph(3, {60, 2, false});
  OptimizeOptions options;
  options.memoryLimit = 1000;
  for (bool schedule : {true, false}) {
    options.schedule = schedule;
    OptimizeResult result = optimize(graph, model, options);
    EXPECT_NE(result.error.find("the memory limit of 1000 bytes cannot be met"), std::string::npos)
        << result.error;
    EXPECT_TRUE(result.plan.items.empty());
  }
}

} // namespace
