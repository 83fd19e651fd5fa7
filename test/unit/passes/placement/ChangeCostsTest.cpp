// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What placement takes changes of layout to cost is what the planner's sequences send.
#include "passes/placement/core/ChangeCosts.h"

#include "passes/redistribute/core/Planner.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {
struct Costs {
  PropagationGraph graph;
  LayoutTable layouts;
  ChangeCosts changes;
  TensorId tensor;

  Costs(Mesh mesh, std::vector<int64_t> shape)
      : graph(std::move(mesh)), layouts(graph.mesh), changes(graph, layouts),
        tensor(graph.addInput(std::move(shape), 4)) {}
  LayoutId layout(const char *text) {
    return layouts.intern(parseLayout(graph.mesh, text).value->canonicalize(graph.shape(tensor)));
  }
  double bytes(const char *from, const char *to) {
    return changes.bytes(tensor, layout(from), layout(to));
  }
};

AxisPlacement shard(int dim) { return AxisPlacement::shard(dim, {}, 0); }
} // namespace

TEST(ChangeCosts, AChangedOrderIsOneExchange) {
  Costs c(Mesh({{"a", 2}, {"b", 2}}), {8, 4});
  const double whole = 8 * 4 * 4;
  // Two ranks swap their quarters; axis by axis it would be gathered, or nothing.
  EXPECT_EQ(c.bytes("[S(0), S(0)]", "[S(0), S(0)], order = [1, 0]"), whole / 4);
  EXPECT_EQ(c.bytes("[S(0), S(0)]", "[R, S(0)]"), whole / 2);
  EXPECT_EQ(c.bytes("[S(0), S(1)]", "[S(1), S(0)]"), whole / 4);
  EXPECT_EQ(c.bytes("[R, R]", "[S(0), S(1)]"), 0);
}

TEST(ChangeCosts, UnevenShardsCountAsTheyAre) {
  Costs c(Mesh({{"a", 4}}), {13, 2});
  // 4, 4, 4 and 1 rows: the last rank gets twelve of them.
  EXPECT_EQ(c.bytes("[S(0)]", "[R]"), 12 * 2 * 4);
  std::vector<AxisPlacement> row{AxisPlacement::replicate()};
  EXPECT_EQ(c.changes.ofAxis(c.tensor, 0, row, shard(0), AxisPlacement::replicate()), 12 * 2 * 4);
  EXPECT_EQ(c.changes.ofAxis(c.tensor, 0, row, AxisPlacement::partial(Reduction::Sum), shard(0)),
            12 * 2 * 4);
}

TEST(ChangeCosts, AnAxisComesAndGoesInnermost) {
  Costs c(Mesh({{"a", 2}, {"b", 2}}), {8, 4});
  // Whichever level the shards were given elsewhere, b is outside.
  std::vector<AxisPlacement> row{AxisPlacement::replicate(), AxisPlacement::shard(0, {}, 1)};
  EXPECT_EQ(c.changes.ofAxis(c.tensor, 0, row, AxisPlacement::partial(Reduction::Sum), shard(0)),
            8 * 4 * 4 / 4);
}

TEST(ChangeCosts, WhatThePlannerSends) {
  const Mesh mesh({{"a", 2}, {"b", 3}});
  const char *all[] = {
      "[R, R]",       "[S(0), R]",   "[R, S(0)]",      "[S(0), S(0)]",
      "[S(1), S(0)]", "[P(sum), R]", "[P(sum), S(1)]", "[S(0), S(0)], order = [1, 0]"};
  Costs c(mesh, {7, 5});
  for (const char *from : all)
    for (const char *to : all) {
      double sent = 0;
      std::vector<int64_t> shape{7, 5};
      for (const RedistributeStep &step :
           planCheapest(*parseLayout(mesh, from).value, *parseLayout(mesh, to).value, shape).steps)
        sent += bytesMoved(step, shape, 4);
      EXPECT_EQ(c.bytes(from, to), sent) << from << " -> " << to;
    }
}
