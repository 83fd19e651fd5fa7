// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of which a part is placed: what the rest becomes, and how many bytes it moves, against
// the least possible by hand.
#include "test/unit/passes/placement/HalfPlaced.h"

using namespace shardc;
using namespace shardc::test;

namespace {
const Mesh kTp({{"tp", 4}}), kDp({{"dp", 4}}), kDpTp({{"dp", 2}, {"tp", 2}});

/// The gradients of x through q, k and v = x w^T, and the residual's.
struct Siblings : HalfPlaced {
  TensorId sum, parts[3], total;
  Siblings(Shape shape, const char *residual, const char *weights = "[S(0)]",
           const char *heads = "[S(2)]")
      : HalfPlaced(kTp) {
    int64_t width = shape.back();
    TensorId other = placed(shape, residual);
    for (TensorId &part : parts) {
      TensorId dy = gelu(placed(shape, heads));
      wish(dy, heads);
      part = inputGradient(dy, placed({width, width}, weights));
    }
    sum = add(add(parts[0], parts[1]), parts[2]);
    total = add(other, gelu(sum)); // in between is the norm, which is not linear
  }
};
} // namespace

TEST(HalfPlaced, SiblingsAreSummedBeforeTheyAreReduced) {
  Siblings m({2, 5, 96}, "[R]");
  Result r(m);
  for (TensorId part : m.parts)
    EXPECT_EQ(r.layout(part), "[P(sum)]");
  EXPECT_EQ(r.layout(m.sum), "[P(sum)]");
  EXPECT_EQ(r.layout(m.total), "[R]");
  EXPECT_EQ(r.kinds, "all_reduce");
  EXPECT_EQ(r.bytes, 2 * 3 / 4.0 * (2 * 5 * 96 * 4)); // one all-reduce of x: the least possible
}

TEST(HalfPlaced, SiblingsAreReducedIntoTheSequence) {
  Siblings m({2, 8, 96}, "[S(1)]");
  TensorId back = m.redistribute(m.sum, "[S(1)]");
  m.add(m.placed({2, 8, 96}, "[S(1)]"), back);
  Result r(m);
  EXPECT_EQ(r.layout(m.sum), "[P(sum)]");
  EXPECT_EQ(r.layout(m.total), "[S(1)]");
  EXPECT_EQ(r.kinds, "reduce_scatter");
  EXPECT_EQ(r.bytes, 3 / 4.0 * (2 * 8 * 96 * 4));
}

TEST(HalfPlaced, UnevenAndEmptyShards) {
  // Five rows of the sequence over four ranks: 2, 2, 1, 0; heads 40, 24, 32, 0.
  Siblings m({2, 5, 96}, "[S(1)]", "[S(0, sizes = [40, 24, 32, 0])]",
             "[S(2, sizes = [40, 24, 32, 0])]");
  Result r(m);
  EXPECT_EQ(r.kinds, "reduce_scatter");
  EXPECT_EQ(r.layout(m.total), "[S(1)]");
}

TEST(HalfPlaced, AWeightGradientIsScatteredIntoItsParameter) {
  HalfPlaced m(kDp);
  TensorId dy = m.placed({32, 16, 64}, "[S(0)]"), x = m.placed({32, 16, 32}, "[S(0)]");
  TensorId dw = m.weightGradient(dy, x);
  m.redistribute(dw, "[S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout(dw), "[P(sum)]");
  EXPECT_EQ(r.kinds, "reduce_scatter");
  EXPECT_EQ(r.bytes, 3 / 4.0 * (64 * 32 * 4));
}

TEST(HalfPlaced, AWeightGradientUnderBothAxes) {
  HalfPlaced m(kDpTp);
  TensorId dy = m.placed({8, 3, 64}, "[S(0), S(2)]"), x = m.placed({8, 3, 32}, "[S(0), R]");
  TensorId dw = m.weightGradient(dy, x);
  m.redistribute(dw, "[S(0), S(0)], order = [1, 0]");
  Result r(m);
  EXPECT_EQ(r.layout(dw), "[P(sum), S(0)]");
  EXPECT_EQ(r.kinds, "reduce_scatter");
}

TEST(HalfPlaced, TiedWeightsAreReducedOnce) {
  HalfPlaced m(kDp);
  TensorId dw[2];
  for (TensorId &part : dw)
    part = m.weightGradient(m.placed({8, 3, 64}, "[S(0)]"), m.placed({8, 3, 32}, "[S(0)]"));
  TensorId sum = m.add(dw[0], dw[1]);
  m.redistribute(sum, "[R]");
  Result r(m);
  EXPECT_EQ(r.layout(sum), "[P(sum)]");
  EXPECT_EQ(r.kinds, "all_reduce");
}

TEST(HalfPlaced, APartialValueIsReducedForOpsThatNeedIt) {
  HalfPlaced m(kTp);
  TensorId y = m.placed({8, 6}, "[P(sum)]"), most = m.placed({8, 6}, "[P(max)]");
  TensorId scaled = m.mul(y, m.placed({6}, "[R]")); // linear, but nothing is gained by waiting
  TensorId a = m.gelu(y), b = m.gelu(y), c = m.gelu(most);
  Result r(m);
  EXPECT_EQ(r.kinds, "all_reduce, all_reduce"); // one for each value
  for (TensorId t : {scaled, a, b, c})
    EXPECT_EQ(r.layout(t), "[R]");
  EXPECT_EQ(r.layout(y), "[P(sum)]");
}

TEST(HalfPlaced, WhatTheProgramRedistributesAlreadyIsShared) {
  HalfPlaced m(kTp);
  TensorId y = m.placed({8, 6}, "[P(sum)]");
  m.redistribute(y, "[R]");
  TensorId a = m.gelu(y);
  EXPECT_EQ(Result(m).kinds, "");
  EXPECT_EQ(Result(m).layout(a), "[R]");
  // A sum of what is to be scattered and is used whole, too: once each.
  HalfPlaced n(kTp);
  TensorId g = n.gelu(n.placed({8, 6}, "[S(1)]"));
  n.redistribute(g, "[R]");
  TensorId whole = n.placed({8, 6}, "[R]"), b = n.add(g, whole);
  n.redistribute(b, "[R]");
  Result r(n);
  EXPECT_EQ(r.kinds, "all_gather");
}

TEST(HalfPlaced, WishesAreFollowedWhereThatIsCheap) {
  HalfPlaced m(kTp);
  TensorId x = m.placed({8, 64}, "[R]"), followed = m.gelu(x);
  m.wish(followed, "[S(0)]");
  EXPECT_EQ(Result(m).layout(followed), "[S(0)]");

  HalfPlaced n(kTp);
  TensorId y = n.placed({8, 64}, "[S(1)]"), other = n.add(y, n.placed({8, 64}, "[S(1)]"));
  n.wish(other, "[S(0)]");
  Result r(n);
  EXPECT_EQ(r.layout(other), "[S(1)]"); // one all-to-all instead of two
  EXPECT_EQ(r.kinds, "");
  ASSERT_EQ(r.placed.remarks.size(), 1u);
  EXPECT_EQ(r.placed.remarks[0].kind, Remark::Kind::Unfollowed);
}

TEST(HalfPlaced, AGivenWishBinds) {
  HalfPlaced m(kTp);
  TensorId x = m.placed({8, 64}, "[S(1)]");
  TensorId free = m.graph.addRedistribution(x, std::nullopt);
  Sharding sharding{m.graph.mesh, {AxisSharding()}};
  sharding.axes[0].placement = Placement::partial();
  sharding.axes[0].given = true;
  m.graph.wish(free, sharding);
  TensorId y = m.gelu(x);
  sharding.axes[0].placement = Placement::replicate();
  m.graph.wish(y, sharding);
  Result r(m);
  EXPECT_EQ(r.layout(free), "[P(sum)]");
  EXPECT_EQ(r.layout(y), "[R]");
  EXPECT_EQ(r.kinds, "all_gather");
}

TEST(HalfPlaced, AnOpenRedistributionIsWhatIsFree) {
  for (const char *layout : {"[R]", "[S(1)]", "[P(sum)]"}) {
    HalfPlaced m(kTp);
    TensorId free = m.graph.addRedistribution(m.placed({8, 64}, layout), std::nullopt);
    EXPECT_EQ(Result(m).layout(free), layout);
    EXPECT_EQ(Result(m).kinds, "");
  }
}

TEST(HalfPlaced, SplitsThatSayTheSameInOtherWordsAreFree) {
  // Twelve heads of 64 over four ranks: what is placed says S(1), the view needs whole heads.
  HalfPlaced m(kTp);
  TensorId x = m.placed({2, 768}, "[S(1)]");
  TensorId y = m.view(x, {2, 12, 64});
  Result r(m);
  EXPECT_EQ(r.layout(y), "[S(1)]");
  EXPECT_EQ(r.kinds, "");
  // Six heads are 192 elements each, which are three heads of two ranks: gathered.
  HalfPlaced n(kTp);
  n.view(n.placed({2, 384}, "[S(1)]"), {2, 6, 64});
  EXPECT_EQ(Result(n).kinds, "all_gather");
}

TEST(HalfPlaced, LayoutsThatOnlyAProgramHas) {
  // Two blocks inside three uneven chunks: no annotation says so, but what is placed may be so.
  HalfPlaced m(Mesh({{"a", 3}, {"b", 2}}));
  const char *nested = "[S(1), S(1, blocks = 2)]";
  TensorId x = m.placed({4, 10}, nested), y = m.placed({4, 10}, "[S(1), S(1)], order = [1, 0]");
  TensorId sum = m.add(m.gelu(x), y);
  TensorId back = m.redistribute(sum, nested);
  Result r(m); // checks that what is placed stays as it is
  EXPECT_EQ(r.layout(back), nested);
}

TEST(HalfPlaced, UnknownSizes) {
  HalfPlaced m(kDpTp);
  TensorId dy = m.placed({kDynamic, 16, 64}, "[S(0), S(2)]");
  TensorId w = m.placed({64, 32}, "[R, S(0)]"), x = m.placed({kDynamic, 16, 32}, "[S(0), R]");
  TensorId dx = m.inputGradient(dy, w), dw = m.weightGradient(dy, x);
  m.redistribute(dx, "[S(0), R]");
  m.redistribute(dw, "[R, S(0)]");
  Result r(m);
  EXPECT_EQ(r.layout(dx), "[S(0), P(sum)]");
  EXPECT_EQ(r.layout(dw), "[P(sum), S(0)]");
  EXPECT_EQ(r.kinds, "all_reduce, all_reduce");
}

TEST(HalfPlaced, MistakesInTheGraphAreSaid) {
  HalfPlaced m(kTp);
  m.wish(m.placed({8, 3}, "[S(0)]"), "[S(0)]");
  m.graph.addPlacedInput({8}, 4, *parseLayout(kTp, "[S(1)]").value);
  m.graph.addPlacedInput({8}, 4, *parseLayout(kDp, "[S(0)]").value);
  EXPECT_EQ(placeGraph(m.graph).errors.size(), 3u);
}
