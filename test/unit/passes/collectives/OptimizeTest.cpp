// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generated training programs of the usual kinds: how close to the bounds, under which memory.
#include "passes/collectives/core/Optimize.h"
#include "passes/collectives/core/CheckPlan.h"
#include "passes/cost/core/SimV1.h"
#include "test/unit/passes/collectives/ModelGenerator.h"

#include <ctime>
#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::collectives;
using shardc::collectives::test::generateModel;
using shardc::collectives::test::ModelShape;
using shardc::collectives::test::Part;

namespace {

struct Family {
  const char *name;
  ModelShape shape;
  /// Step over max(lower bound without latency, critical path), at most.
  double ratio;
};

ModelShape shapeOf(unsigned layers, uint64_t tokens, uint32_t dp, uint32_t tp, Part part) {
  ModelShape shape;
  shape.layers = layers;
  shape.tokens = tokens;
  shape.dp = dp;
  shape.tp = tp;
  shape.part = part;
  return shape;
}

ModelShape experts(uint32_t dp) {
  ModelShape shape = shapeOf(12, 8192, dp, 1, Part::Forward);
  shape.hidden = 2048;
  shape.mlp = 8192;
  shape.localExperts = 8;
  return shape;
}

ModelShape replicated() {
  ModelShape shape = shapeOf(12, 8192, 8, 1, Part::Backward);
  shape.hidden = 2048;
  shape.mlp = 8192;
  shape.vocabulary = 50257;
  shape.replicatedParameters = true;
  return shape;
}

// What no order can hide is in these ratios: the gather of the embedding before the first kernel
// and the reduction of its gradient after the last one are a good part of so few layers.
const Family families[] = {
    {"sharded forward", shapeOf(12, 8192, 64, 1, Part::Forward), 1.05},
    {"sharded backward", shapeOf(12, 8192, 64, 1, Part::Backward), 1.09},
    {"short sharded forward", shapeOf(12, 2048, 8, 1, Part::Forward), 1.16},
    {"sharded and tensor parallel forward", shapeOf(12, 8192, 8, 8, Part::Forward), 1.15},
    {"sharded and tensor parallel backward", shapeOf(12, 4096, 8, 2, Part::Backward), 1.08},
    {"experts", experts(64), 1.10},
    {"experts within a node", experts(8), 1.08},
    {"data parallel backward", replicated(), 1.05},
};

TEST(OptimizeFamilies, CloseToTheBoundsWithoutMoreMemory) {
  cost::SimV1 model;
  for (const Family &family : families) {
    SCOPED_TRACE(family.name);
    Graph graph = generateModel(family.shape);
    OptimizeResult result = optimize(graph, model);
    ASSERT_EQ(result.error, "");
    double bound = std::max(result.bounds.lowerBoundNoLatencyUs, result.bounds.criticalPathUs);
    EXPECT_LE(result.after.stepUs, family.ratio * bound);
    EXPECT_GE(result.after.stepUs, bound);
    EXPECT_LE(result.after.peakHoldBytes, result.before.peakHoldBytes * 1.02);
    // Every collective is accounted for.
    size_t members = result.alone.size();
    for (const BucketRecord &bucket : result.buckets)
      members += bucket.members.size();
    size_t collectives = 0;
    for (uint64_t count : result.before.counts)
      collectives += count;
    EXPECT_EQ(members, collectives);
  }
}

TEST(OptimizeFamilies, AutomaticCapsAreAsGoodAsFixedOnes) {
  cost::SimV1 model;
  for (const Family &family : families) {
    SCOPED_TRACE(family.name);
    Graph graph = generateModel(family.shape);
    double best = optimize(graph, model).after.stepUs;
    for (double cap : {1, 4, 16, 64, 250, 1000, 2000}) {
      OptimizeOptions options;
      options.buckets.caps = BucketCaps({cap});
      OptimizeResult result = optimize(graph, model, options);
      EXPECT_LE(best, 1.02 * result.after.stepUs) << cap;
      for (const BucketRecord &bucket : result.buckets)
        EXPECT_LE(bucket.bytes, uint64_t(cap * 1048576));
    }
  }
}

TEST(OptimizeFamilies, MoreMemoryIsNeverSlower) {
  cost::SimV1 model;
  for (const Family &family : families) {
    SCOPED_TRACE(family.name);
    ModelShape shape = family.shape;
    shape.layers = 4;
    Graph graph = generateModel(shape);
    uint64_t peak = simulate(graph, model).peakHoldBytes;
    double last = 1e300, lastOfSearch = 1e300;
    for (uint64_t percent : {100, 101, 103, 108, 115, 130, 170, 300}) {
      OptimizeOptions options;
      options.memoryLimit = peak / 100 * percent;
      SearchOptions search;
      search.memoryLimit = *options.memoryLimit;
      SearchResult found = searchSchedules(graph, model, search);
      if (!found.best)
        continue; // 100 percent of a rounded peak
      double step = simulate(graph, found.best->plan, model).stepUs;
      EXPECT_LE(step, lastOfSearch);
      lastOfSearch = step;
      OptimizeResult result = optimize(graph, model, options);
      ASSERT_EQ(result.error, "");
      EXPECT_LE(result.after.peakHoldBytes, *options.memoryLimit);
      // Slack may make it shorter, and other times are worth half a percent.
      EXPECT_LE(result.after.stepUs, lastOfSearch * (1 + defaultRobust * largestNominalCost));
      EXPECT_LE(result.after.stepUs, last * (1 + largestNominalCost));
      last = std::min(last, result.after.stepUs);
    }
  }
}

TEST(OptimizeFamilies, MergingIsLeftAloneWhereItBuysNothing) {
  cost::SimV1 model;
  // Eight ranks of one node, long kernels: every gather is hidden.
  Graph graph = generateModel(shapeOf(8, 16384, 8, 1, Part::Forward));
  OptimizeResult result = optimize(graph, model);
  EXPECT_LE(result.buckets.size(), 1u);
  // 256 ranks, short kernels: latency is all there is.
  ModelShape shape = shapeOf(8, 4096, 256, 1, Part::Forward);
  shape.hidden = 1024;
  shape.mlp = 4096;
  result = optimize(generateModel(shape), model);
  EXPECT_LT(result.after.stepUs * 4, result.before.stepUs);
  EXPECT_GE(result.buckets.size(), 1u);
}

TEST(OptimizeFamilies, FlatBucketsCostNothing) {
  cost::SimV1 model;
  ModelShape shape = shapeOf(8, 2048, 64, 1, Part::Forward);
  Graph graph = generateModel(shape);
  OptimizeOptions flat;
  flat.flat = true;
  OptimizeResult packed = optimize(graph, model), result = optimize(graph, model, flat);
  ASSERT_EQ(result.error, "");
  EXPECT_LE(result.after.stepUs, packed.after.stepUs);
  EXPECT_EQ(result.after.stepUs, result.afterFlat.stepUs);
  EXPECT_NEAR(result.after.computeUs, result.before.computeUs, 1e-6);
}

double secondsFor(unsigned layers) {
  cost::SimV1 model;
  Graph graph = generateModel(shapeOf(layers, 4096, 64, 1, Part::Backward));
  std::clock_t begin = std::clock();
  EXPECT_EQ(optimize(graph, model).error, "");
  return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(OptimizeFamilies, TimeGrowsWithTheProgram) {
  // What is quadratic shows with 4,000 and 16,000 nodes; a tool measures a million.
  secondsFor(40);
  double small = secondsFor(40), large = secondsFor(160);
  EXPECT_LE(large, 4 * 2.0 * small + 0.05);
}

} // namespace
