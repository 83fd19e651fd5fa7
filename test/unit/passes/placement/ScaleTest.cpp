// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The work must be linear in the number of ops: 1,000,000 of them, annotated at the first and last
// layer only, so that shardings travel through the whole program.
#include "passes/placement/core/Place.h"
#include "test/unit/passes/placement/Models.h"

#include <gtest/gtest.h>

using namespace shardc;
using namespace shardc::test;

/// Layers of norm, up, gelu, down and a residual sum (5 ops), on one pair of weights.
static Model layers(int count) {
  Model m(Mesh({{"dp", 2}, {"tp", 4}}));
  TensorId x = m.input("x", {8, 64});
  TensorId up = m.input("up", {256, 64}), down = m.input("down", {64, 256}), w = m.input("w", {64});
  m.annotate("x", "[S(0), ?]");
  m.annotate("up", "[?, S(0)]");
  RuleBuilder norm = m.rule({x, w}, {8, 64}).cooperative({-1}, 2);
  RuleBuilder linearUp = m.rule({x, up}, {8, 256}).einsum({"mi", "oi"}, {"mo"}).linear(0).linear(1);
  RuleBuilder linearDown = RuleBuilder::ofShapes({{8, 256}, {64, 256}}, {{8, 64}})
                               .einsum({"mi", "oi"}, {"mo"})
                               .linear(0)
                               .linear(1);
  for (int i = 0; i < count; ++i) {
    TensorId h = m.op(linearUp, {m.op(norm, {x, w}, {8, 64}), up}, {8, 256});
    x = m.add(x, m.op(linearDown, {m.gelu(h), down}, {8, 64}));
  }
  m.names["y"] = m.constrain(x, "[?, ?]");
  return m;
}

TEST(Scale, VisitsAreLinear) {
  for (int count : {100, 1000, 10000}) {
    Model m = layers(count);
    EXPECT_LT(propagate(m.graph).visits, 8 * static_cast<int64_t>(m.graph.ops.size()));
  }
}

TEST(Scale, AMillionOps) {
  Model m = layers(200000);
  ASSERT_GT(m.graph.ops.size(), 1000000u);
  PlacedGraph placed = placeGraph(m.graph);
  ASSERT_TRUE(placed.errors.empty());
  EXPECT_EQ(placed.tensorLayout(m.names["y"]).str(), "[S(0), R]");
  EXPECT_EQ(placed.redistributions.size(), 200000u); // one all-reduce per layer
  EXPECT_LT(placed.layouts.size(), 20u);
}

TEST(Scale, ShardingsTravelBackwards) {
  Model m(Mesh({{"dp", 4}}));
  TensorId x = m.input("x", {8, 64});
  TensorId y = x;
  for (int i = 0; i < 100000; ++i)
    y = m.gelu(y);
  m.constrain(y, "[S(0)]");
  Propagation propagation = propagate(m.graph);
  EXPECT_LT(propagation.visits, 400000);
  EXPECT_TRUE(propagation.states[x].placement.isShard());
}
