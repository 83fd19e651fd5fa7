// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/core/StateLayout.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace shardc;
using namespace shardc::training;

namespace {

Mesh mesh() { return {{{"dp", 2}, {"tp", 3}}, {}}; }

Layout layout(const std::string &text) {
  Parsed<Layout> parsed = parseLayout(mesh(), text);
  EXPECT_TRUE(parsed) << parsed.error;
  return *parsed.value;
}

std::string sharded(const std::string &text, std::vector<int64_t> shape,
                    std::vector<unsigned> axes = {0}) {
  return shardedState(layout(text), shape, axes).str();
}

} // namespace

TEST(StateLayout, TakesTheFirstDimThatIsDividedEqually) {
  EXPECT_EQ(sharded("[R, R]", {4, 6}), "[S(0), R]");
  EXPECT_EQ(sharded("[R, R]", {5, 6}), "[S(1), R]");
}

TEST(StateLayout, TakesTheLargestWhereNoDimIsDividedEqually) {
  EXPECT_EQ(sharded("[R, R]", {5, 7}), "[S(1), R]");
  EXPECT_EQ(sharded("[R, R]", {3}), "[S(0), R]");
}

TEST(StateLayout, LeavesWhatCannotBeSplit) {
  EXPECT_EQ(sharded("[R, R]", {}), "[R, R]");
  EXPECT_EQ(sharded("[R, R]", {1, 1}), "[R, R]");
  EXPECT_EQ(sharded("[S(0), R]", {4, 4}), "[S(0), R]");
}

TEST(StateLayout, SplitsTheShardsOfAnotherAxis) {
  // Every element is on one rank, and no rank has more than another where that is possible.
  for (std::vector<int64_t> shape : {std::vector<int64_t>{12, 5}, {7, 5}, {6, 1}, {2, 2}}) {
    Layout made = shardedState(layout("[R, S(0)]"), shape, std::vector<unsigned>{0});
    int64_t elements = 0;
    for (int64_t rank = 0; rank < 6; ++rank) {
      std::vector<int64_t> local = made.localShapeOfRank(shape, rank);
      elements += std::accumulate(local.begin(), local.end(), int64_t(1), std::multiplies());
    }
    EXPECT_EQ(elements, shape[0] * shape[1]) << made.str();
    EXPECT_TRUE(made.placements[1] == layout("[R, S(0)]").placements[1]) << made.str();
  }
}

TEST(StateLayout, SumsAreOverAxesThatReplicate) {
  EXPECT_EQ(partialState(layout("[R, S(0)]"), std::vector<unsigned>{0}).str(), "[P(sum), S(0)]");
  EXPECT_EQ(partialState(layout("[S(0), R]"), std::vector<unsigned>{0}).str(), "[S(0), R]");
}

TEST(StateLayout, PartsOfOneElementAreUpdatedEverywhere) {
  std::vector<int64_t> row{1, 6}, none{0, 6}, many{2, 6};
  EXPECT_EQ(updatedLayout(layout("[S(0), S(1)]"), row).str(), "[R, S(1)]");
  EXPECT_EQ(updatedLayout(layout("[S(0), R]"), none).str(), "[R, R]");
  EXPECT_EQ(updatedLayout(layout("[S(0), R]"), many).str(), "[S(0), R]");
}
