// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/Slots.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace shardc;

namespace {

/// Each rank finds all that it has, in order, in as few slots as can be.
TEST(Slots, NameWhatEachRankHasInOrder) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    size_t ranks = 1 + random() % 6, count = random() % 7;
    std::vector<std::vector<bool>> table(ranks, std::vector<bool>(count));
    unsigned share = 1 + random() % 4;
    for (auto &row : table)
      for (size_t number = 0; number < count; ++number)
        row[number] = random() % 4 < share;
    auto has = [&](size_t rank, size_t number) { return bool(table[rank][number]); };
    std::vector<Slot> slots = slotsOf(ranks, count, has);
    size_t most = 0, anys = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::vector<size_t> wanted, found;
      for (size_t number = 0; number < count; ++number)
        if (has(rank, number))
          wanted.push_back(number);
      std::optional<size_t> last;
      for (const Slot &slot : slots) {
        ASSERT_EQ(slot.size(), ranks);
        if (!slot[rank])
          continue;
        EXPECT_TRUE(!last || *last < *slot[rank]);
        last = slot[rank];
        if (has(rank, *slot[rank]))
          found.push_back(*slot[rank]);
      }
      EXPECT_EQ(found, wanted);
      most = std::max(most, wanted.size());
    }
    for (size_t number = 0; number < count; ++number) {
      bool isAnys = false;
      for (size_t rank = 0; rank < ranks; ++rank)
        isAnys |= has(rank, number);
      anys += isAnys;
    }
    EXPECT_EQ(slots.size(), most);
    // A slot that is one number for all ranks has one bound for all of them where that is alike.
    if (most == anys)
      for (const Slot &slot : slots)
        EXPECT_TRUE(std::ranges::all_of(slot, [&](auto number) { return number == slot.front(); }));
  }
}

} // namespace
