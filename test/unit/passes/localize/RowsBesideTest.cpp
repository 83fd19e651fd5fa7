// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/RowsBeside.h"

#include "gtest/gtest.h"

using namespace shardc;

namespace {

using Rows = struct Run; // testing::Test has a Run of its own

/// Of all pairs of small runs: what is needed and not there is in one of the two, and nothing else.
TEST(RowsBeside, AreWhatIsNeededAndNotThere) {
  std::vector<Rows> own, needed;
  for (int64_t a = 0; a < 6; ++a)
    for (int64_t b = a; b < 6; ++b)
      for (int64_t c = 0; c < 6; ++c)
        for (int64_t d = c; d < 6; ++d) {
          own.push_back({a, b});
          needed.push_back({c, d});
        }
  RowsBeside rows = rowsBeside(own, needed);
  auto isIn = [](Rows run, int64_t row) { return run.begin <= row && row < run.end; };
  int64_t most = 0;
  for (size_t rank = 0; rank < own.size(); ++rank) {
    int64_t count = 0;
    for (int64_t row = 0; row < 6; ++row) {
      bool isLacked = isIn(needed[rank], row) && !isIn(own[rank], row);
      count += isLacked;
      EXPECT_EQ(isIn(rows.before[rank], row) + isIn(rows.behind[rank], row), int(isLacked));
      if (own[rank].size() > 0) {
        EXPECT_TRUE(!isIn(rows.before[rank], row) || row < own[rank].begin);
        EXPECT_TRUE(!isIn(rows.behind[rank], row) || row >= own[rank].end);
      }
    }
    EXPECT_EQ(rows.before[rank].size() + rows.behind[rank].size(), count);
    most = std::max(most, count);
  }
  EXPECT_EQ(rows.most(), most);
}

TEST(RowsBeside, AHullIsOfBoth) {
  EXPECT_EQ(hullOf({1, 3}, {5, 6}), (Rows{1, 6}));
  EXPECT_EQ(hullOf({5, 6}, {1, 3}), (Rows{1, 6}));
  EXPECT_EQ(hullOf({0, 0}, {5, 6}), (Rows{5, 6}));
  EXPECT_EQ(hullOf({5, 6}, {0, 0}), (Rows{5, 6}));
}

} // namespace
