// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/collectives/core/MemoryTracker.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RandomGraph.h"

#include <random>

using namespace shardc::collectives;
using shardc::CollectiveKind;
using shardc::collectives::test::Builder;
using shardc::collectives::test::nodeNamed;
using shardc::collectives::test::randomGraph;

namespace {

constexpr auto RS = CollectiveKind::ReduceScatter;

TEST(RangeMaxTree, AgreesWithAPlainArray) {
  std::mt19937 random(1);
  for (size_t size : {1, 2, 3, 7, 8, 33}) {
    std::vector<int64_t> values(size);
    for (int64_t &value : values)
      value = random() % 100;
    RangeMaxTree tree(values);
    for (int step = 0; step != 500; ++step) {
      uint32_t begin = random() % (size + 1), end = random() % (size + 1);
      int64_t delta = int64_t(random() % 41) - 20;
      tree.add(begin, end, delta);
      for (uint32_t i = begin; i < end; ++i)
        values[i] += delta;
      uint32_t from = random() % size;
      ASSERT_EQ(tree.maxFrom(from), *std::max_element(values.begin() + from, values.end()));
    }
    EXPECT_LE(tree.maxFrom(size), RangeMaxTree::lowest);
  }
}

/// Two chains, small -> big -> small, one after the other: 100 in between each.
Graph twoChains() {
  Builder b;
  ValueId x = b.input(10);
  for (const char *name : {"a", "b"}) {
    ValueId big = b.kernel(std::string(name) + "1", {x}, 1, 100);
    b.output(b.kernel(std::string(name) + "2", {big}, 1, 5));
  }
  return b.finish();
}

TEST(MemoryTracker, RefusesWhatCouldNotBeFinished) {
  Graph graph = twoChains();
  Problem problem(graph);
  auto step = [&](const char *name) {
    return problem.stepOfTask[problem.taskOf[nodeNamed(graph, name)]];
  };
  // Base order: 10 + 100 + 5, then 5 more.
  MemoryTracker tracker(problem, 120, false);
  EXPECT_EQ(tracker.basePeakBytes(), 120u);
  // Early, b1 would be live while a1 runs.
  EXPECT_FALSE(tracker.tryStep(step("b1")));
  EXPECT_EQ(tracker.currentBytes(), 10u);
  EXPECT_TRUE(tracker.tryStep(step("a1")));
  EXPECT_FALSE(tracker.tryStep(step("b1")));
  EXPECT_FALSE(tracker.tryStep(step("a2"), 6)); // 5 bytes are left beside it
  EXPECT_EQ(tracker.growth(step("a2")), 5 - 100);
  EXPECT_TRUE(tracker.tryStep(step("a2"), 5));
  EXPECT_EQ(tracker.firstRemaining(), step("b1"));
  EXPECT_TRUE(tracker.tryStep(step("b1")));
  EXPECT_TRUE(tracker.tryStep(step("b2")));
  EXPECT_EQ(tracker.currentBytes(), 20u);
  EXPECT_EQ(tracker.peakBytes(), 120u);
}

TEST(MemoryTracker, LooksAheadAtTheCompletion) {
  // The early kernel fits now, but not while the big one runs later.
  Builder b;
  ValueId x = b.input(0);
  ValueId small = b.kernel("small", {x}, 1, 10);
  ValueId big = b.kernel("big", {small}, 1, 80);
  ValueId next = b.kernel("next", {big}, 1, 10);
  ValueId early = b.kernel("early", {x}, 1, 50);
  b.output(b.kernel("last", {early, next}, 1, 10));
  Graph graph = b.finish();
  Problem problem(graph);
  auto step = [&](const char *name) {
    return problem.stepOfTask[problem.taskOf[nodeNamed(graph, name)]];
  };
  MemoryTracker tracker(problem, 100, false);
  EXPECT_EQ(tracker.basePeakBytes(), 90u);
  EXPECT_TRUE(tracker.tryStep(step("small")));
  EXPECT_FALSE(tracker.tryStep(step("early"))); // 60 now, 140 with big
  EXPECT_TRUE(tracker.tryStep(step("big")));
  EXPECT_FALSE(tracker.tryStep(step("early")));
  EXPECT_TRUE(tracker.tryStep(step("next")));
  EXPECT_TRUE(tracker.tryStep(step("early")));
}

TEST(MemoryTracker, BucketsArePackedAndShareTheirResult) {
  Builder b;
  GroupId g = b.group("g", 2);
  ValueId p = b.kernel("p", {b.input(0)}, 1, 100), q = b.kernel("q", {b.input(0)}, 1, 60);
  ValueId x = b.run("rs1", RS, g, p, 50, "sum"), y = b.run("rs2", RS, g, q, 30, "sum");
  b.output(b.kernel("k", {x}, 1, 1));
  b.output(b.kernel("l", {y}, 1, 2));
  Graph graph = b.finish();
  Problem problem(graph);
  auto task = [&](const char *name) { return problem.taskOf[nodeNamed(graph, name)]; };
  std::vector<TaskId> members = {task("rs1"), task("rs2")};
  for (uint64_t limit : {319u, 320u}) {
    MemoryTracker tracker(problem, limit, false);
    ASSERT_TRUE(tracker.tryStep(problem.stepOfTask[task("p")]));
    ASSERT_TRUE(tracker.tryStep(problem.stepOfTask[task("q")]));
    // Packing takes as much as the operands.
    ASSERT_EQ(tracker.tryStartBucket(members), limit == 320);
    if (limit != 320) {
      EXPECT_EQ(tracker.currentBytes(), 160u);
      continue;
    }
    EXPECT_EQ(tracker.currentBytes(), 160u + 80);
    ASSERT_TRUE(tracker.tryFinishBucket(0, members));
    EXPECT_EQ(tracker.currentBytes(), 80u);
    ASSERT_TRUE(tracker.tryStep(problem.stepOfTask[task("k")]));
    EXPECT_EQ(tracker.currentBytes(), 81u); // the other half is still in use
    ASSERT_TRUE(tracker.tryStep(problem.stepOfTask[task("l")]));
    EXPECT_EQ(tracker.currentBytes(), 3u);
    EXPECT_EQ(tracker.firstRemaining(), problem.numSteps);
  }
}

/// Random steps, tried in any order: what is accepted can always be finished within the limit.
TEST(MemoryTracker, WhatIsAcceptedCanBeFinished) {
  for (uint32_t seed = 0; seed != 200; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 300, {50, 2, true});
    Problem problem(graph);
    uint64_t base = MemoryTracker(problem, UINT64_MAX, false).basePeakBytes();
    uint64_t limit = base + base * (seed % 3) / 10;
    MemoryTracker tracker(problem, limit, false);
    std::mt19937 random(seed);
    std::vector<uint32_t> missing(problem.numTasks());
    std::vector<bool> done(problem.numTasks());
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      missing[task] = problem.before[task].size();
    auto run = [&](TaskId task) {
      done[task] = true;
      for (const Dependence &d : problem.after[task])
        --missing[d.task];
      // Waits at once.
      if (problem.stepOfWait[task] != none)
        tracker.runStep(problem.stepOfWait[task]);
    };
    for (int tries = 0; tries != 200; ++tries) {
      TaskId task = random() % problem.numTasks();
      if (!done[task] && !missing[task] && tracker.tryStep(problem.stepOfTask[task]))
        run(task);
    }
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      if (!done[task]) {
        tracker.runStep(problem.stepOfTask[task]);
        run(task);
      }
    EXPECT_LE(tracker.peakBytes(), limit);
    EXPECT_EQ(tracker.firstRemaining(), problem.numSteps);
  }
}

} // namespace
