// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/FarthestNeighbour.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <vector>

using namespace shardc;

namespace {

/// PyTorch's chunks, element by element.
std::vector<int64_t> ownersOf(int64_t size, int64_t ranks) {
  std::vector<int64_t> owners;
  int64_t chunk = (size + ranks - 1) / ranks;
  for (int64_t i = 0; i < size; ++i)
    owners.push_back(i / chunk);
  return owners;
}

/// By looking at every element under every position.
int64_t bruteForce(const ChunkedWindows &windows, int64_t least, int64_t most) {
  int64_t farthest = 0;
  for (int64_t symbol = least; symbol <= most; ++symbol) {
    int64_t size = *windows.size(symbol), count = *windows.count(symbol);
    if (size <= 0 || count <= 0)
      continue;
    std::vector<int64_t> owners = ownersOf(size, windows.ranks),
                         ofPositions = ownersOf(count, windows.ranks);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < windows.extent; ++j) {
        int64_t numerator = i * windows.stride + windows.origin;
        int64_t element =
            (numerator - ((numerator % windows.per) + windows.per) % windows.per) / windows.per + j;
        if (windows.isCut)
          element = std::clamp<int64_t>(element, 0, size - 1);
        if (element >= 0 && element < size)
          farthest = std::max(farthest, std::abs(owners[element] - ofPositions[i]));
      }
  }
  return farthest;
}

TEST(FarthestNeighbour, NoLessThanOfEveryElement) {
  for (int64_t ranks : {1, 2, 3, 5, 8})
    for (int64_t stride : {1, 2, 3})
      for (int64_t extent : {1, 2, 3, 7})
        for (int64_t padding : {0, 1, 3})
          for (int64_t scale : {1, 4}) {
            ChunkedWindows windows;
            windows.size = [=](int64_t s) { return scale * s; };
            windows.count = [=](int64_t s) -> std::optional<int64_t> {
              int64_t room = scale * s + 2 * padding - extent;
              return room < 0 ? 0 : room / stride + 1;
            };
            windows.ranks = ranks;
            windows.origin = -padding;
            windows.stride = stride;
            windows.extent = extent;
            windows.divisor = stride;
            windows.least = 8;
            windows.most = std::numeric_limits<int64_t>::max() / 16;
            std::optional<int64_t> found = farthestNeighbour(windows);
            ASSERT_TRUE(found);
            // Until all ranks have some, and more.
            int64_t least = 8, most = 8 + 2 * ranks * ranks * stride + 40;
            int64_t exact = bruteForce(windows, least, most);
            EXPECT_GE(*found, exact) << ranks << " ranks, stride " << stride << ", extent "
                                     << extent << ", padding " << padding << ", scale " << scale;
            if (stride == 1 && extent == 2 * padding + 1 && extent <= 8 / ranks)
              EXPECT_LE(*found, 1);
            windows.most = most;
            EXPECT_EQ(farthestNeighbour(windows), exact);
          }
}

TEST(FarthestNeighbour, LookupsOnALine) {
  for (int64_t ranks : {2, 3, 5, 8})
    for (auto [up, down] : {std::pair(1, 1), std::pair(2, 1), std::pair(3, 2), std::pair(1, 4)})
      for (int64_t before : {0, 1, 5})
        for (int64_t pad : {0, 7}) {
          ChunkedWindows windows;
          windows.size = [](int64_t s) { return s; };
          windows.count = [=](int64_t s) { return s * up / down + pad; };
          windows.divisor = down;
          windows.ranks = ranks;
          windows.stride = 2 * down;
          windows.per = 2 * up;
          windows.origin = down - (1 + 2 * before) * up;
          windows.extent = 2 * before + 2;
          windows.isCut = true;
          windows.least = 9;
          windows.most = std::numeric_limits<int64_t>::max();
          std::optional<int64_t> found = farthestNeighbour(windows);
          ASSERT_TRUE(found);
          int64_t most = 9 + 8 * ranks * ranks * down + 40;
          EXPECT_GE(*found, bruteForce(windows, 9, most))
              << ranks << " ranks, " << up << " / " << down << ", before " << before << ", pad "
              << pad;
          windows.most = 40;
          EXPECT_EQ(farthestNeighbour(windows), bruteForce(windows, 9, 40));
        }
}

TEST(FarthestNeighbour, RangesThatAreShortAreLookedThrough) {
  ChunkedWindows windows;
  windows.size = [](int64_t s) { return s; };
  windows.count = [](int64_t s) { return 2 * s; }; // in no proportion to the stride
  windows.ranks = 4;
  windows.extent = 1;
  windows.least = 5;
  windows.most = 20;
  EXPECT_EQ(farthestNeighbour(windows), bruteForce(windows, 5, 20));
  windows.most = std::numeric_limits<int64_t>::max() / 16;
  EXPECT_FALSE(farthestNeighbour(windows));
}

TEST(FarthestNeighbour, NothingOfAnEmptyRange) {
  ChunkedWindows windows;
  windows.size = windows.count = [](int64_t s) { return s; };
  windows.ranks = 4;
  windows.least = 5;
  windows.most = std::numeric_limits<int64_t>::min(); // not known, to those who forget to ask
  EXPECT_FALSE(farthestNeighbour(windows));
}

TEST(FarthestNeighbour, OfARangeWithoutEnd) {
  ChunkedWindows windows;
  windows.size = windows.count = [](int64_t s) { return s; };
  windows.ranks = 4;
  windows.origin = -1;
  windows.extent = 3;
  windows.least = 4;
  windows.most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(farthestNeighbour(windows), 1);
}

TEST(FarthestNeighbour, NothingWhereAnExpressionHasNoValue) {
  ChunkedWindows windows;
  windows.size = [](int64_t) -> std::optional<int64_t> { return std::nullopt; };
  windows.count = [](int64_t s) { return s; };
  windows.least = 1;
  windows.most = 4;
  EXPECT_FALSE(farthestNeighbour(windows));
}

} // namespace
