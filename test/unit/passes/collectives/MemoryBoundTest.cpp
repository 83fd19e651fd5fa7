// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lower bound of the peak, by hand and against all orders.
#include "passes/collectives/core/MemoryBound.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/AllOrders.h"
#include "test/unit/passes/collectives/RandomGraph.h"

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

TEST(MemoryBound, WhatIsNeededAcrossATaskCounts) {
  Builder b;
  ValueId x = b.input(1);
  ValueId kept = b.kernel("kept", {x}, 1, 10);
  ValueId first = b.kernel("first", {kept}, 1, 100);
  ValueId second = b.kernel("second", {first}, 1, 1000);
  ValueId third = b.kernel("third", {second}, 1, 100);
  ValueId either = b.kernel("either", {x}, 1, 50); // before or after the rest
  b.output(b.kernel("last", {third, kept}, 1, 7));
  b.output(b.kernel("other", {either}, 1, 3));
  Graph graph = b.finish();
  MemoryBound bound = memoryBound(Problem(graph));
  EXPECT_EQ(bound.bytes, 1u + 10 + 100 + 1000);
  EXPECT_EQ(graph.nameOf(bound.node), "second");
}

/// Two outputs, `a` and `c`; `c` is made of the first or of the input.
Graph twoOutputs(bool chained) {
  Builder b;
  ValueId x = b.input(1);
  ValueId a = b.kernel("a", {x}, 1, 100);
  b.output(a);
  b.output(b.kernel("c", {b.kernel("b", {chained ? a : x}, 1, 20)}, 1, 30));
  return b.finish();
}

TEST(MemoryBound, OutputsAreLiveFromTheirBeginningOn) {
  Graph graph = twoOutputs(/*chained=*/false);
  // `a` or `c` is the last output to begin; nothing is left beside it in the first case.
  MemoryBound bound = memoryBound(Problem(graph));
  EXPECT_EQ(bound.bytes, 1u + 100 + 30);
  EXPECT_EQ(bound.node, none);
}

TEST(MemoryBound, TheLastOutputHasOperands) {
  Graph graph = twoOutputs(/*chained=*/true);
  MemoryBound bound = memoryBound(Problem(graph));
  EXPECT_EQ(bound.bytes, 1u + 100 + 20 + 30);
  EXPECT_EQ(graph.nameOf(bound.node), "c");
}

TEST(MemoryBound, InABucketOnlyWhatACollectiveReadsIsKept) {
  Builder b;
  GroupId group = b.group("dp", 4);
  ValueId whole = b.kernel("whole", {b.input(1)}, 1, 1000);
  ValueId part = b.graph.addTensor(40);
  b.graph.addNode(NodeClass::Alias, "part", std::vector{whole}, std::vector{part});
  b.output(b.run("scatter", CollectiveKind::ReduceScatter, group, part, 10, "sum"));
  Graph graph = b.finish();
  // Alone it would hold 1000 + 10; packed, the part and the result.
  EXPECT_EQ(memoryBound(Problem(graph)).bytes, 1u + 1000);
}

TEST(MemoryBound, LittleWorkGivesALowerBound) {
  SCOPED_TRACE("");
  for (uint32_t seed = 0; seed != 20; ++seed) {
    Graph graph = randomGraph(seed, {300, 2, true});
    Problem problem(graph);
    uint64_t all = memoryBound(problem).bytes, last = 0;
    for (uint64_t blocks : {0, 1, 2, 3, 100}) {
      uint64_t some = memoryBound(problem, blocks * 20000).bytes;
      EXPECT_GE(some, last);
      EXPECT_LE(some, all);
      last = some;
    }
    EXPECT_EQ(last, all);
  }
}

// Either branch is at its peak while the other has not begun or is over, and holds its result then:
// no storage of one has to be live at a task of the other, so that the bound does not see it.
TEST(MemoryBound, WhatIsNotProvedIsNotClaimed) {
  Builder b;
  ValueId x = b.input(1);
  std::vector<ValueId> results;
  for (std::string name : {"a", "b"}) {
    ValueId large = b.kernel(name + ".large", {x}, 1, 100);
    results.push_back(b.kernel(name + ".small", {large}, 1, 40));
  }
  b.output(b.kernel("sum", results, 1, 5));
  Graph graph = b.finish();
  cost::SimV1 model;
  OptimizeOptions options;
  auto errorAt = [&](uint64_t limit) {
    options.memoryLimit = limit;
    return optimize(graph, model, options).error;
  };
  EXPECT_EQ(errorAt(181), "");
  std::string found = "the program takes 181 bytes at its peak, and the least that was found is "
                      "181; allow at least that much";
  std::string proof = "in every order 141 bytes are live at once, when 'a.small' runs";
  EXPECT_EQ(errorAt(180), "no order was found that meets the memory limit of 180 bytes: " + found +
                              " (that there is none is not proved: " + proof + ")");
  EXPECT_EQ(errorAt(141).substr(0, 18), "no order was found");
  EXPECT_EQ(errorAt(140), "the memory limit of 140 bytes cannot be met: " + proof + "; " + found);
  options.schedule = false;
  EXPECT_EQ(errorAt(180),
            "the memory limit of 180 bytes cannot be met in the order of the program, "
            "which takes 181 bytes at its peak; allow at least that much, or a new "
            "order");
}

TEST(MemoryBound, NoOrderTakesLess) {
  int equal = 0;
  double sum = 0;
  int count = forEachTinyProgram([&](const Problem &problem, uint64_t least) {
    uint64_t bound = memoryBound(problem).bytes;
    EXPECT_LE(bound, least);
    equal += bound == least;
    sum += double(bound) / double(least);
  });
  // It is worth something.
  EXPECT_GE(equal, count * 3 / 4);
  EXPECT_GE(sum / count, 0.95);
  std::printf("%d programs, bound reached by %d, mean %.3f of the least peak\n", count, equal,
              sum / count);
}

TEST(MemoryBound, NoPlanTakesLess) {
  cost::SimV1 model;
  for (uint32_t seed = 0; seed != 300; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 60000, {20 + seed % 80, 1 + seed % 3, seed % 3 != 0});
    uint64_t bound = memoryBound(Problem(graph)).bytes;
    OptimizeOptions options;
    options.flat = seed % 4 == 0;
    options.memoryLimit = bound + bound * (seed % 8) / 8;
    OptimizeResult result = optimize(graph, model, options);
    EXPECT_GE(result.before.peakHoldBytes, bound);
    if (result.error.empty())
      EXPECT_GE(result.after.peakHoldBytes, bound);
    // One byte less is refused for good.
    options.memoryLimit = bound - 1;
    EXPECT_NE(optimize(graph, model, options).error.find("cannot be met"), std::string::npos);
  }
}

} // namespace
