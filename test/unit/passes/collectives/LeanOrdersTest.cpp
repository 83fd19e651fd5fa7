// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Orders that take little memory: valid, counted right, near the least, and found whatever order
// the program comes in.
#include "passes/collectives/core/LeanOrders.h"
#include "passes/collectives/core/Optimize.h"
#include "test/unit/passes/collectives/AllOrders.h"
#include "test/unit/passes/collectives/RandomGraph.h"

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

TEST(LeanOrders, AreOrdersAndTakeWhatIsSaid) {
  cost::SimV1 model;
  for (uint32_t seed = 0; seed != 200; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph = randomGraph(seed + 20000, {20 + seed % 100, 1 + seed % 3, seed % 2 == 0});
    Problem problem(graph);
    for (LeanOrder kind : leanOrders) {
      std::vector<TaskId> order = leanOrder(problem, kind);
      EXPECT_EQ(order.size(), problem.numTasks());
      Plan plan = planInOrder(problem, order);
      EXPECT_EQ(checkPlan(graph, plan), "");
      EXPECT_EQ(peakOfOrder(problem, order), simulate(graph, plan, model).peakHoldBytes);
      EXPECT_EQ(nodesInOrder(problem, order).size(), graph.numNodes());
      EXPECT_EQ(leanOrder(problem, kind), order);
    }
  }
}

TEST(LeanOrders, OfTinyProgramsAreNearTheLeast) {
  int optimal = 0;
  double sum = 0;
  int count = forEachTinyProgram([&](const Problem &problem, uint64_t least) {
    uint64_t found = UINT64_MAX;
    for (LeanOrder kind : leanOrders)
      found = std::min(found, peakOfOrder(problem, leanOrder(problem, kind)));
    EXPECT_GE(found, least);
    optimal += found == least;
    sum += double(found) / double(least);
  });
  EXPECT_GE(optimal, count * 85 / 100);
  EXPECT_LE(sum / count, 1.005);
  std::printf("%d programs, least peak of %d, mean %.4f of it\n", count, optimal, sum / count);
}

enum class Order { AsComputed, GathersFirst, ReductionsLast, Both };

/// A backward of 20 layers: each gathers its weight, passes the gradient on, and reduces the
/// gradient of its weight. Gathers may all be started before the first layer, and reductions after
/// the last one. Sizes are so large that latency does not count.
Graph backward(Order order) {
  constexpr uint64_t mb = 1000000;
  Builder b;
  GroupId dp = b.group("dp", 8);
  ValueId gradient = b.input(30 * mb);
  std::vector<ValueId> saved, weights, locals;
  for (int i = 0; i != 20; ++i) {
    saved.push_back(b.input(20 * mb));
    weights.push_back(b.input(10 * mb));
  }
  auto gather = [&](int i) {
    weights[i] =
        b.run("gather" + std::to_string(i), CollectiveKind::AllGather, dp, weights[i], 80 * mb);
  };
  auto reduce = [&](int i) {
    b.output(b.run("reduce" + std::to_string(i), CollectiveKind::ReduceScatter, dp, locals[i],
                   10 * mb, "sum"));
  };
  bool gathersFirst = order == Order::GathersFirst || order == Order::Both;
  bool reductionsLast = order == Order::ReductionsLast || order == Order::Both;
  for (int i = 0; i != 20 && gathersFirst; ++i)
    gather(i);
  for (int i = 0; i != 20; ++i) {
    std::string name = std::to_string(i);
    if (!gathersFirst)
      gather(i);
    locals.push_back(b.kernel("local" + name, {gradient, saved[i]}, 150, 80 * mb));
    if (!reductionsLast)
      reduce(i);
    gradient = b.kernel("back" + name, {gradient, weights[i]}, 150, 30 * mb);
  }
  for (int i = 0; i != 20 && reductionsLast; ++i)
    reduce(i);
  b.output(gradient);
  return b.finish();
}

TEST(LeanOrders, TheOrderOfTheProgramDoesNotCount) {
  cost::SimV1 model;
  uint64_t least = simulate(backward(Order::AsComputed), model).peakHoldBytes;
  for (Order order : {Order::GathersFirst, Order::ReductionsLast, Order::Both}) {
    Graph graph = backward(order);
    EXPECT_GE(simulate(graph, model).peakHoldBytes, 2 * least);
    Problem problem(graph);
    EXPECT_LE(peakOfOrder(problem, leanOrder(problem, LeanOrder::DeepestFirst)), least);
  }
}

TEST(LeanOrders, APrefetchingProgramIsPlannedWithinWhatItTookBefore) {
  cost::SimV1 model;
  Graph original = backward(Order::AsComputed);
  OptimizeOptions options;
  for (uint64_t percent : {100, 115, 200}) {
    options.memoryLimit = simulate(original, model).peakHoldBytes * percent / 100;
    double stepUs = optimize(original, model, options).after.stepUs;
    for (Order order : {Order::GathersFirst, Order::ReductionsLast, Order::Both}) {
      OptimizeResult result = optimize(backward(order), model, options);
      ASSERT_EQ(result.error, "");
      EXPECT_LE(result.after.peakHoldBytes, *options.memoryLimit);
      // The levels of memory that are tried lie elsewhere: above a lower peak.
      EXPECT_LE(result.after.stepUs, (percent == 100 ? 1.15 : 1.02) * stepUs);
    }
  }
}

TEST(LeanOrders, MoreMemoryIsNeverSlowerThanALeanOrder) {
  cost::SimV1 model;
  Graph graph = backward(Order::Both);
  uint64_t least = simulate(backward(Order::AsComputed), model).peakHoldBytes;
  uint64_t own = simulate(graph, model).peakHoldBytes;
  for (double robust : {0.0, defaultRobust}) {
    double last = std::numeric_limits<double>::infinity();
    for (uint64_t limit = least; limit < own + own / 5; limit += (own - least) / 10) {
      OptimizeOptions options;
      options.memoryLimit = limit;
      options.robust = robust;
      OptimizeResult result = optimize(graph, model, options);
      ASSERT_EQ(result.error, "");
      EXPECT_LE(result.after.stepUs, last + 1e-9) << limit;
      last = result.after.stepUs;
    }
  }
}

} // namespace
