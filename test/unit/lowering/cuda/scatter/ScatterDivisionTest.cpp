// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/scatter/ScatterDivision.h"

#include <gtest/gtest.h>

using namespace shardc::cuda;

namespace {

using Numbers = std::vector<unsigned>;

Numbers columnDims(const ScatterDivision &division) {
  Numbers dims;
  for (const ScatterColumn &column : division.columns)
    dims.push_back(column.dim);
  return dims;
}

// A gradient of an embedding: whole rows of 768 elements.
TEST(ScatterDivisionTest, RowsOfATable) {
  ScatterDivision d = divideScatter({{50257, 768}, {8192, 768}, {-1, 1}, {true, false}});
  EXPECT_EQ(d.updateLoops, Numbers{0});
  EXPECT_EQ(d.rowDims, Numbers{0});
  EXPECT_EQ(columnDims(d), Numbers{1});
  EXPECT_TRUE(d.columns[0].whole);
  EXPECT_EQ(d.updates, 8192);
  EXPECT_EQ(d.rows, 50257);
  EXPECT_EQ(d.elementsOfRow, 768);
  EXPECT_TRUE(d.narrow);
  EXPECT_EQ(d.lanes, 128);
}

// Positions of their own for each element: every dim numbers rows, in the order of the result.
TEST(ScatterDivisionTest, PositionsOfElements) {
  ScatterDivision d = divideScatter({{4, 9, 5}, {4, 7, 5}, {0, -1, 2}, {true, true, true}});
  EXPECT_EQ(d.updateLoops, (Numbers{0, 1, 2}));
  EXPECT_EQ(d.rowDims, (Numbers{0, 1, 2}));
  EXPECT_TRUE(d.columns.empty());
  EXPECT_EQ(d.updates, 4 * 7 * 5);
  EXPECT_EQ(d.rows, 4 * 9 * 5);
  EXPECT_EQ(d.elementsOfRow, 1);
  EXPECT_EQ(d.lanes, 1);
}

// Two loops are added up into each element, although positions change along one only.
TEST(ScatterDivisionTest, LoopThatIsNoDim) {
  ScatterDivision d = divideScatter({{10}, {4, 3}, {-1}, {true, false}});
  EXPECT_EQ(d.updateLoops, (Numbers{0, 1}));
  EXPECT_EQ(d.updates, 12);
  EXPECT_EQ(d.rows, 10);
}

// The innermost dim has positions: neighbours are rows, not columns.
TEST(ScatterDivisionTest, PositionsOfTheLastDim) {
  ScatterDivision d = divideScatter({{6, 100}, {6, 8}, {0, -1}, {false, true}});
  EXPECT_EQ(d.rowDims, Numbers{1});
  EXPECT_EQ(columnDims(d), Numbers{0});
  EXPECT_EQ(d.lanes, 1);
}

// A dim of size 1 behind the columns does not keep them from being neighbours.
TEST(ScatterDivisionTest, LastDimOfOneElement) {
  ScatterDivision d = divideScatter({{6, 12, 1}, {3, 12, 1}, {-1, 1, 2}, {true, false, false}});
  EXPECT_EQ(columnDims(d), (Numbers{1, 2}));
  EXPECT_EQ(d.lanes, 16);
}

TEST(ScatterDivisionTest, FewerColumnsOfValues) {
  ScatterDivision d = divideScatter({{6, 12}, {3, 10}, {-1, 1}, {true, false}});
  EXPECT_FALSE(d.columns[0].whole);
}

// A loop that is two dims of the result picks a diagonal: it is no column.
TEST(ScatterDivisionTest, Diagonal) {
  ScatterDivision d = divideScatter({{5, 7, 7}, {3, 7}, {-1, 1, 1}, {true, false}});
  EXPECT_EQ(d.updateLoops, (Numbers{0, 1}));
  EXPECT_EQ(d.rowDims, (Numbers{0, 1, 2}));
  EXPECT_EQ(d.rows, 5 * 7 * 7);
}

TEST(ScatterDivisionTest, UnknownSizes) {
  ScatterDivision d =
      divideScatter({{100, kUnknownSize}, {kUnknownSize, kUnknownSize}, {-1, 1}, {true, false}});
  EXPECT_EQ(d.updates, kUnknownSize);
  EXPECT_EQ(d.rows, 100);
  EXPECT_EQ(d.elementsOfRow, kUnknownSize);
  EXPECT_FALSE(d.columns[0].whole);
  EXPECT_FALSE(d.narrow);
  EXPECT_EQ(d.lanes, 32);
  // No element, whatever the others are.
  EXPECT_EQ(divideScatter({{0, kUnknownSize}, {3, 3}, {-1, -1}, {true, true}}).rows, 0);
}

TEST(ScatterDivisionTest, LargeNumbersAreWide) {
  int64_t half = int64_t{1} << 29;
  EXPECT_TRUE(divideScatter({{half - 1}, {5}, {-1}, {true}}).narrow);
  EXPECT_FALSE(divideScatter({{half}, {5}, {-1}, {true}}).narrow);
  EXPECT_FALSE(divideScatter({{5}, {half}, {-1}, {true}}).narrow);
  // A product that overflows counts as unknown.
  int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(divideScatter({{huge, huge}, {5, 5}, {-1, 1}, {true, true}}).rows, kUnknownSize);
}

TEST(ScatterDivisionTest, Digits) {
  EXPECT_EQ(countDigits(0, 8), 1u);
  EXPECT_EQ(countDigits(255, 8), 1u);
  EXPECT_EQ(countDigits(256, 8), 2u);
  EXPECT_EQ(countDigits(50257, 8), 2u);
  EXPECT_EQ(countDigits(65536, 8), 3u);
  EXPECT_EQ(countDigits(~uint64_t{0}, 8), 8u);
}

} // namespace
