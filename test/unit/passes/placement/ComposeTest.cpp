// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Compose.h"

#include <gtest/gtest.h>

using namespace shardc;

static const Mesh kMesh({{"dp", 2}, {"tp", 4}});

static AxisPlacement shard(int dim, int64_t blocks, int64_t granule, uint8_t level = 0) {
  return AxisPlacement::shard(dim, Split{blocks, granule, nullptr, false}, level);
}

static std::string text(AxisPlacement dp, AxisPlacement tp, std::vector<int64_t> shape) {
  std::optional<Layout> layout = compose(kMesh, shape, std::vector{dp, tp});
  return layout ? layout->str() : "none";
}

TEST(Compose, AxesOnDifferentFactorsOfOneDim) {
  AxisPlacement open;
  EXPECT_EQ(text(open, shard(0, 1, 64), {768}), "[R, S(0)]");
  EXPECT_EQ(text(open, shard(0, 1, 64), {384}), "[R, S(0, sizes = [128, 128, 128, 0])]");
  // [4, 5] flattened: dp on the 4, tp on the 5.
  EXPECT_EQ(text(shard(0, 1, 5), shard(0, 4, 1), {20}), "[S(0), S(0, blocks = 2)]");
  // dp on the 3 is uneven, so tp on the 8 goes outside, and leaves dp units of 2.
  EXPECT_EQ(text(shard(0, 1, 8), shard(0, 3, 1), {24}),
            "[S(0, sizes = [4, 2]), S(0, blocks = 3)], order = [1, 0]");
  // Neither is even: 3 over dp, 5 over tp.
  EXPECT_EQ(text(shard(0, 1, 5), shard(0, 3, 1), {15}), "none");
  EXPECT_EQ(text(shard(0, 1, 5), shard(0, kDynamic, 1), {kDynamic}), "none");
}

TEST(Compose, AxesOnOneFactorNestByLevel) {
  EXPECT_EQ(text(shard(0, 1, 1, 0), shard(0, 1, 1, 1), {20}), "[S(0), S(0)]");
  EXPECT_EQ(text(shard(0, 1, 1, 1), shard(0, 1, 1, 0), {20}), "[S(0), S(0)], order = [1, 0]");
  // The inner axis must find whole granules.
  EXPECT_EQ(text(shard(0, 1, 1, 0), shard(0, 1, 4, 1), {20}), "none");
}

TEST(Compose, StoredShardsGoInside) {
  AxisPlacement stored = shard(0, 1, 1);
  stored.storage = true;
  EXPECT_EQ(text(stored, shard(0, 3, 64), {2304}), "[S(0), S(0, blocks = 3)], order = [1, 0]");
}

TEST(Compose, DecomposeIsTheReverse) {
  SizesPool pool;
  for (const char *given :
       {"[R, P(max)]", "[S(0), S(0, blocks = 2)]", "[S(0), S(1)]", "[S(0), S(0)], order = [1, 0]",
        "[S(0, sizes = [4, 16]), R]", "[S(1), S(0, blocks = 5, sizes = [1, 2, 0, 1])]"}) {
    Layout layout = *parseLayout(kMesh, given).value;
    std::vector<int64_t> shape{20, 6};
    ASSERT_TRUE(layout.validate(shape).empty()) << given;
    std::optional<Layout> back = compose(kMesh, shape, decompose(layout, pool));
    EXPECT_EQ(back ? back->str() : "none", layout.canonicalize(shape).str());
  }
}

TEST(LayoutTable, OneNumberForOneLayout) {
  LayoutTable table(kMesh);
  std::vector<int64_t> shape{8, 8};
  std::vector<AxisPlacement> a{AxisPlacement::replicate(), shard(0, 1, 1)};
  std::vector<AxisPlacement> b{AxisPlacement(), shard(0, 1, 2)};
  EXPECT_EQ(table.compose(0, shape, a), table.compose(0, shape, b));
  EXPECT_EQ(table[*table.compose(0, shape, a)].str(), "[R, S(0)]");
  a[0] = shard(0, 1, 1);
  EXPECT_NE(table.compose(0, shape, a), table.compose(0, shape, b));
}
