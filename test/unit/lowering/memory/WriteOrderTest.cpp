// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small programs against all of their permutations.

#include "lowering/memory/core/WriteOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace shardc::memory;

namespace {

using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

bool holds(const std::vector<uint32_t> &order, const Pairs &before,
           const std::vector<Replacement> &replacements) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    place[order[i]] = i;
  for (auto [first, second] : before)
    if (place[first] >= place[second])
      return false;
  for (const Replacement &replacement : replacements)
    for (uint32_t read : replacement.reads)
      for (uint32_t write : replacement.writes)
        if (place[read] >= place[write])
          return false;
  return true;
}

bool isPossible(uint32_t ops, const Pairs &before, const std::vector<Replacement> &replacements) {
  std::vector<uint32_t> order(ops);
  std::iota(order.begin(), order.end(), 0u);
  do
    if (holds(order, before, replacements))
      return true;
  while (std::ranges::next_permutation(order).found);
  return false;
}

std::vector<uint32_t> identity(uint32_t ops) {
  std::vector<uint32_t> order(ops);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

TEST(WriteOrder, LeavesAProgramThatIsInPlaceAsItIs) {
  WriteOrder result = orderWrites(4, Pairs{{0, 2}}, std::vector<Replacement>{{{0, 1}, {2, 3}}});
  EXPECT_EQ(result.order, identity(4));
  EXPECT_EQ(result.isInPlace, std::vector<bool>{true});
  EXPECT_FALSE(result.isChanged);
}

TEST(WriteOrder, MovesAWriteAndWhatNeedsItBehindTheLastRead) {
  // 1 writes, 2 needs 1, 4 reads the old value.
  WriteOrder result = orderWrites(6, Pairs{{1, 2}}, std::vector<Replacement>{{{0, 4}, {1}}});
  EXPECT_EQ(result.order, (std::vector<uint32_t>{0, 3, 4, 1, 2, 5}));
  EXPECT_TRUE(result.isInPlace[0]);
  EXPECT_TRUE(result.isChanged);
}

TEST(WriteOrder, FindsValuesThatAreExchanged) {
  std::vector<Replacement> replacements{{{0}, {1}}, {{1}, {0}}};
  WriteOrder result = orderWrites(2, Pairs{}, replacements);
  EXPECT_EQ(result.isInPlace, (std::vector<bool>{true, false}));
  EXPECT_EQ(result.order, identity(2));
}

TEST(WriteOrder, FindsAnOpThatReadsOneAndWritesTheOther) {
  WriteOrder result = orderWrites(3, Pairs{}, std::vector<Replacement>{{{1}, {1}}});
  EXPECT_FALSE(result.isInPlace[0]);
  EXPECT_FALSE(result.isChanged);
}

TEST(WriteOrder, KeepsWishesThatCostNothing) {
  // 2 should come before 0, which is possible, and before 1, which 2 needs.
  std::vector<Replacement> wishes{{{2}, {1}}, {{2}, {0}}};
  WriteOrder result = orderWrites(3, Pairs{{1, 2}}, std::vector<Replacement>{}, wishes);
  EXPECT_EQ(result.order, (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_TRUE(result.isChanged);
  // Not where that is what a replacement forbids.
  result = orderWrites(3, Pairs{{1, 2}}, std::vector<Replacement>{{{0}, {1}}}, wishes);
  EXPECT_EQ(result.order, identity(3));
  EXPECT_TRUE(result.isInPlace[0]);
}

TEST(WriteOrder, IsRightWhereverAnyOrderIs) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const uint32_t ops = 2 + random() % 5;
    Pairs before;
    for (uint32_t first = 0; first < ops; ++first)
      for (uint32_t second = first + 1; second < ops; ++second)
        if (random() % 4 == 0)
          before.push_back({first, second});
    std::vector<Replacement> replacements(1 + random() % 3);
    for (Replacement &replacement : replacements)
      for (uint32_t op = 0; op < ops; ++op) {
        if (random() % 3 == 0)
          replacement.reads.push_back(op);
        if (random() % 4 == 0)
          replacement.writes.push_back(op);
      }
    WriteOrder result = orderWrites(ops, before, replacements);
    std::vector<Replacement> inPlace;
    for (size_t i = 0; i < replacements.size(); ++i)
      if (result.isInPlace[i])
        inPlace.push_back(replacements[i]);
    ASSERT_EQ(result.order.size(), ops);
    EXPECT_TRUE(holds(result.order, before, inPlace)) << trial;
    EXPECT_EQ(result.isChanged, result.order != identity(ops)) << trial;
    for (size_t i = 0; i < replacements.size(); ++i) {
      if (result.isInPlace[i])
        continue;
      std::vector<Replacement> more = inPlace;
      more.push_back(replacements[i]);
      EXPECT_FALSE(isPossible(ops, before, more)) << trial;
    }
  }
}

} // namespace
