// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory the search for a schedule takes, and what for.
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/ScheduleSearch.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/Builder.h"
#include "test/unit/passes/collectives/RoundModel.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

struct Layers {
  uint32_t ranks;
  std::vector<uint64_t> weightBytes; // gathered
  double kernelUs;
};

/// Each layer gathers its weight, an input, and multiplies what the one before made.
Graph layersOf(const Layers &layers) {
  Builder b;
  GroupId group = b.group("dp", layers.ranks);
  ValueId x = b.input(1);
  for (size_t i = 0; i != layers.weightBytes.size(); ++i) {
    std::string name = std::to_string(i);
    ValueId shard = b.input(std::max<uint64_t>(layers.weightBytes[i] / layers.ranks, 1));
    ValueId weight =
        b.run("gather" + name, CollectiveKind::AllGather, group, shard, layers.weightBytes[i]);
    x = b.kernel("product" + name, {x, weight}, layers.kernelUs, 1);
  }
  b.output(x);
  return b.finish();
}

// Gathers of 40 bytes take 50 us, kernels 100, each launch 1. One after the other: 4 * 152. The
// peak is x, four shards of 10, one weight, and what the product before made and this one makes.
const Layers four{4, {40, 40, 40, 40}, 100};
constexpr double inOrderUs = 608;
constexpr uint64_t inOrderBytes = 1 + 40 + 40 + 2;

TEST(ScheduleSearch, TheProgramsOwnMemoryLeavesNoRoomForTheNextWeight) {
  OptimizeResult result = optimize(layersOf(four), RoundModel());
  EXPECT_EQ(result.before.stepUs, inOrderUs);
  EXPECT_EQ(result.before.peakHoldBytes, inOrderBytes);
  EXPECT_EQ(result.after.stepUs, inOrderUs);
  EXPECT_EQ(result.memoryLimit, inOrderBytes + inOrderBytes / 50);
}

TEST(ScheduleSearch, RoomForOneWeightAheadHidesAllGathersButTheFirst) {
  OptimizeOptions options;
  options.ahead = 2;
  OptimizeResult result = optimize(layersOf(four), RoundModel(), options);
  EXPECT_EQ(result.memoryLimit, inOrderBytes + inOrderBytes / 50 + 2 * 40);
  // The first gather, then the kernels and four launches of gathers.
  EXPECT_NEAR(result.after.stepUs, 50 + 4 * 101 + 4, 1);
  EXPECT_NEAR(result.after.totalExposedUs(), 50, 1);
  // A second weight ahead would bring nothing.
  EXPECT_EQ(result.after.peakHoldBytes, inOrderBytes + 40);
}

TEST(ScheduleSearch, MemoryIsNotTakenForLessThanAPercent) {
  Layers layers = four;
  layers.kernelUs = 100000;
  OptimizeOptions options;
  options.ahead = 2;
  OptimizeResult result = optimize(layersOf(layers), RoundModel(), options);
  EXPECT_LE(result.after.peakHoldBytes, inOrderBytes + inOrderBytes / 50);
  // Unless the user allows it.
  options.memoryLimit = 2 * inOrderBytes;
  result = optimize(layersOf(layers), RoundModel(), options);
  EXPECT_LE(result.after.totalExposedUs(), 50);
}

TEST(ScheduleSearch, ALargeLimitGathersAllTinyWeightsAtOnce) {
  // 64 ranks hold next to nothing each: all weights, packed and unpacked, are more than four times
  // what the program holds in its own order.
  cost::SimV1 model;
  OptimizeOptions options;
  options.memoryLimit = uint64_t(1) << 40;
  for (std::vector<uint64_t> weights : {std::vector<uint64_t>{1024, 1024, 256},
                                        {2048, 1024, 2048},
                                        std::vector<uint64_t>(40, 512)}) {
    OptimizeResult result = optimize(layersOf({64, weights, 0.5}), model, options);
    ASSERT_EQ(result.buckets.size(), 1u);
    EXPECT_EQ(result.buckets.front().members.size(), weights.size());
    EXPECT_EQ(result.buckets.front().closed, CloseReason::Complete);
    // One latency of 64 ranks, and launches.
    EXPECT_LE(result.after.stepUs, 297 + 4 + 2 * double(weights.size()));
  }
}

TEST(ScheduleSearch, ACollectiveInFlightHoldsResultsAndWhatItReads) {
  Builder b;
  GroupId group = b.group("dp", 4);
  ValueId shard = b.input(100);
  b.output(b.run("gather", CollectiveKind::AllGather, group, shard, 400));
  ValueId gradient = b.kernel("gradient", {shard}, 1, 360);
  b.output(b.run("scatter", CollectiveKind::ReduceScatter, group, gradient, 90, "sum"));
  EXPECT_EQ(largestInFlightBytes(b.finish()), 450u);
}

} // namespace
