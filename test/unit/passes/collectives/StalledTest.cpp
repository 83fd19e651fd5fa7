// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that wait for communication most of the time, and what they do with memory.
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/ScheduleSearch.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

constexpr int numLayers = 24;

/// The backward of layers of experts. A layer sends tokens and returns them, one after the other,
/// on the stream of `ep`. It gathers a weight and reduces a gradient on the stream of `dp`, which
/// takes longer. From saved values, which are there from the beginning, it computes larger ones
/// again.
Graph backward() {
  Builder b;
  GroupId ep = b.group("ep", 8), dp = b.group("dp", 64);
  ValueId token = b.input(60);
  for (int i = 0; i != numLayers; ++i) {
    std::string name = std::to_string(i);
    ValueId shard = b.input(1);
    std::vector<ValueId> again;
    for (int j = 0; j != 5; ++j)
      again.push_back(b.kernel("again" + name + "." + std::to_string(j), {b.input(4)}, 1, 20));
    token = b.run("send" + name, CollectiveKind::AllToAll, ep, token, 60);
    ValueId weight = b.run("gather" + name, CollectiveKind::AllGather, dp, shard, 50);
    ValueId product = b.kernel("product" + name, {token, weight, again[0], again[1]}, 1, 60);
    ValueId gradient = b.kernel("gradient" + name, {token, again[2], again[3], again[4]}, 1, 100);
    b.output(b.run("reduce" + name, CollectiveKind::ReduceScatter, dp, gradient, 1, "sum"));
    token = b.run("return" + name, CollectiveKind::AllToAll, ep, product, 60);
  }
  b.output(token);
  return b.finish();
}

OptimizeResult planned(uint64_t percent) {
  Graph graph = backward();
  OptimizeOptions options;
  options.bucket = false;
  options.memoryLimit = simulate(graph, RoundModel()).peakHoldBytes * percent / 100;
  return optimize(graph, RoundModel(), options);
}

TEST(StalledPrograms, MemoryIsKeptForCommunication) {
  OptimizeResult result = planned(130);
  ASSERT_EQ(result.error, "");
  EXPECT_LE(result.after.peakHoldBytes, result.memoryLimit);
  // Gathers (60 us) and reductions (110 us) of one group; kernels take next to nothing.
  EXPECT_EQ(result.bounds.lowerBoundUs, numLayers * 170);
  EXPECT_GE(result.before.stepUs, numLayers * (170 + 2 * 70));
  EXPECT_LE(result.after.stepUs, 1.005 * result.bounds.lowerBoundUs);
}

TEST(StalledPrograms, WhatMeetsNoObstacleIsNotTriedAgainWithMoreMemory) {
  Graph graph = backward();
  RoundModel model;
  SearchOptions options;
  options.bucket = false;
  SearchResult ample = searchSchedules(graph, model, options);
  // Six orders at the program's own memory, and again at levels above where that refused something.
  EXPECT_GT(ample.candidates, 6u);
  // Not all of them every time.
  EXPECT_NE(ample.candidates % 6, 0u) << ample.candidates;
  options.memoryLimit = simulate(graph, model).peakHoldBytes;
  SearchResult least = searchSchedules(graph, model, options);
  EXPECT_EQ(least.candidates, 6u);

  // Nothing to gather, nothing to refuse.
  Builder b;
  ValueId x = b.input(10);
  for (int i = 0; i != 5; ++i)
    x = b.kernel("k" + std::to_string(i), {x}, 1, 10);
  b.output(x);
  EXPECT_EQ(searchSchedules(b.finish(), model, {}).candidates, 6u);
}

} // namespace
