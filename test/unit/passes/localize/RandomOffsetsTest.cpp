// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By hand; test/reference/compare_random_offsets.py compares many with PyTorch's tracker.

#include "passes/localize/core/RandomOffsets.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

AxisSplit axis(unsigned number, int64_t count) { return {number, count, 1, 1, {}}; }

TEST(RandomOffsets, StepsOfFour) {
  EXPECT_EQ(randomAdvance(0), 0);
  EXPECT_EQ(randomAdvance(1), 4);
  EXPECT_EQ(randomAdvance(4), 4);
  EXPECT_EQ(randomAdvance(9), 12);
}

TEST(RandomOffsets, ReplicasShareAStart) {
  Mesh mesh({{"dp", 2}, {"tp", 3}});
  std::vector<SplitDim> dims = {{5, {}}, {7, {{axis(1, 3)}}}};
  // The first shard has 5 x 3 elements.
  for (int64_t dp : {0, 1}) {
    EXPECT_EQ(randomStart(mesh, dims, {dp, 0}), 0);
    EXPECT_EQ(randomStart(mesh, dims, {dp, 1}), 16);
    EXPECT_EQ(randomStart(mesh, dims, {dp, 2}), 32);
  }
}

TEST(RandomOffsets, AxesOnOneDimCountInMeshOrder) {
  Mesh mesh({{"a", 2}, {"b", 2}});
  // PyTorch takes the extent of the last axis alone: 4 elements, where the first shard has 2.
  std::vector<SplitDim> dims = {{8, {{axis(0, 2), axis(1, 2)}}}};
  std::vector<SplitDim> other = {{8, {{axis(1, 2), axis(0, 2)}}}};
  for (int64_t position = 0; position < 4; ++position) {
    Coordinate coordinate = mesh.coordinateOfPosition(position);
    EXPECT_EQ(randomStart(mesh, dims, coordinate), 4 * position);
    EXPECT_EQ(randomStart(mesh, other, coordinate), 4 * position);
  }
}

TEST(RandomOffsets, ShardsCountRowMajor) {
  Mesh mesh({{"a", 2}, {"b", 3}});
  std::vector<DimSplit> splits = {{{axis(1, 3)}}, {}, {{axis(0, 2)}}};
  EXPECT_EQ(shardNumber(mesh, splits, {0, 0}), 0);
  EXPECT_EQ(shardNumber(mesh, splits, {1, 0}), 1);
  EXPECT_EQ(shardNumber(mesh, splits, {0, 1}), 2);
  EXPECT_EQ(shardNumber(mesh, splits, {1, 2}), 5);
}

} // namespace
