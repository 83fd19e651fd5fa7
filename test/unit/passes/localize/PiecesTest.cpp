// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces against lists of elements.
#include "passes/localize/core/Pieces.h"

#include "gtest/gtest.h"

#include <random>

using namespace shardc;

namespace {

using Elements = std::vector<std::pair<unsigned, int64_t>>;

Elements elementsOf(const Pieces &pieces) {
  Elements elements;
  for (const Piece &piece : pieces)
    for (int64_t i = 0; i < piece.count; ++i)
      elements.push_back({piece.source, piece.start + piece.step * i});
  return elements;
}

TEST(Pieces, GoOnWhereTheLastOneEnds) {
  Pieces pieces;
  append(pieces, {0, 3, 2, 1});
  append(pieces, {0, 0, 9, 1}); // empty
  append(pieces, {0, 2, 5, 1});
  EXPECT_EQ(pieces, (Pieces{{0, 5, 2, 1}}));
  append(pieces, {1, 2, 7, 1}); // of another source
  append(pieces, {1, 1, 9, 1});
  append(pieces, {1, 2, 8, -1}); // back again
  EXPECT_EQ(pieces, (Pieces{{0, 5, 2, 1}, {1, 3, 7, 1}, {1, 2, 8, -1}}));
}

TEST(Pieces, SingleElementsAreNotTakenForSteps) {
  Pieces pieces;
  for (int64_t at : {0, 5, 10})
    append(pieces, {0, 1, at, 1});
  EXPECT_EQ(pieces.size(), 3u);
}

TEST(Pieces, SelectTakesWhatAListWould) {
  std::mt19937 random(3);
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 3000; ++trial) {
    Pieces pieces;
    for (int64_t n = draw(1, 5); n > 0; --n) {
      int64_t step = draw(0, 1) ? draw(1, 3) : -draw(1, 3), count = draw(0, 6);
      append(pieces, {static_cast<unsigned>(draw(0, 2)), count, draw(20, 40), step});
    }
    Elements all = elementsOf(pieces);
    ASSERT_EQ(static_cast<int64_t>(all.size()), sizeOf(pieces));
    if (all.empty())
      continue;
    auto size = static_cast<int64_t>(all.size());
    int64_t start = draw(0, size - 1), step = draw(0, 1) ? draw(1, 4) : -draw(1, 4);
    int64_t most = step > 0 ? (size - 1 - start) / step + 1 : start / -step + 1;
    int64_t count = draw(0, most);
    Elements wanted;
    for (int64_t i = 0; i < count; ++i)
      wanted.push_back(all[static_cast<size_t>(start + step * i)]);
    EXPECT_EQ(elementsOf(select(pieces, start, step, count)), wanted);
  }
}

} // namespace
