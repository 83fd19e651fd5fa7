// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/VisibleKeys.h"

#include "gtest/gtest.h"

#include <random>
#include <vector>

using namespace shardc;
using namespace shardc::aten;

namespace {

using Mask = std::vector<std::vector<bool>>;

VisibleKeys keysOf(const Mask &mask) {
  VisibleKeys keys;
  for (const std::vector<bool> &row : mask) {
    std::vector<shardc::Run> runs;
    for (int64_t key = 0; key < static_cast<int64_t>(row.size()); ++key) {
      if (!row[key])
        continue;
      if (runs.empty() || runs.back().end != key)
        runs.push_back({key, key});
      runs.back().end = key + 1;
    }
    keys.append(runs);
  }
  return keys;
}

/// By definition: a query sees the product of what it sees along each dim.
Mask maskOf(const NeighborhoodField &field) {
  int64_t count = 1;
  for (int64_t size : field.sizes)
    count *= size;
  auto sees = [&](int64_t query, int64_t key) {
    for (size_t dim = field.sizes.size(); dim-- > 0;) {
      int64_t size = field.sizes[dim], at = query % size, other = key % size;
      const Neighborhood &window = field.neighborhoods[dim];
      shardc::Run keys = window.keysOf(at, size);
      if (other < keys.begin || other >= keys.end || (other - keys.begin) % window.dilation != 0)
        return false;
      query /= size, key /= size;
    }
    return true;
  };
  Mask mask(count, std::vector<bool>(count));
  for (int64_t query = 0; query < count; ++query)
    for (int64_t key = 0; key < count; ++key)
      mask[query][key] = sees(query, key);
  return mask;
}

class VisibleKeysTest : public testing::Test {
protected:
  int64_t draw(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random);
  }

  NeighborhoodField drawField() {
    NeighborhoodField field;
    int64_t dims = draw(1, 3), most = dims == 1 ? 30 : dims == 2 ? 9 : 5;
    for (int64_t dim = 0; dim < dims; ++dim) {
      int64_t size = draw(2, most), kernel = draw(1, std::min<int64_t>(size, 5));
      Neighborhood window{kernel, 1, draw(1, std::max<int64_t>(size / kernel, 1)), false};
      int64_t kind = draw(0, 3);
      if (kind == 0)
        window.cut = draw(0, kernel - 1);
      else
        window.stride = draw(1, kernel), window.isCausal = kind == 1;
      field.sizes.push_back(size);
      field.neighborhoods.push_back(window);
    }
    return field;
  }

  std::mt19937 random{7};
};

TEST_F(VisibleKeysTest, FindsEveryNeighborhood) {
  for (int i = 0; i < 3000; ++i) {
    Mask mask = maskOf(drawField());
    std::optional<NeighborhoodField> found = findNeighborhoods(keysOf(mask));
    ASSERT_TRUE(found);
    // It may be another one, which sees the same.
    ASSERT_EQ(maskOf(*found), mask);
  }
}

TEST_F(VisibleKeysTest, WhatItFindsIsTheMask) {
  int others = 0;
  for (int i = 0; i < 3000; ++i) {
    Mask mask = maskOf(drawField());
    for (int64_t changes = draw(1, 3); changes > 0; --changes) {
      std::vector<bool> &row = mask[draw(0, static_cast<int64_t>(mask.size()) - 1)];
      row[draw(0, static_cast<int64_t>(row.size()) - 1)].flip();
    }
    if (std::optional<NeighborhoodField> found = findNeighborhoods(keysOf(mask)))
      ASSERT_EQ(maskOf(*found), mask);
    else
      ++others;
  }
  EXPECT_GT(others, 2000);
}

TEST_F(VisibleKeysTest, HasAsFewDimsAsPossible) {
  NeighborhoodField line{{12}, {{5, 1, 1, false, 2}}};
  EXPECT_EQ(findNeighborhoods(keysOf(maskOf(line))), line);
  NeighborhoodField image{{4, 6}, {{3, 1, 1, false, 1}, {3, 1, 1, false}}};
  EXPECT_EQ(findNeighborhoods(keysOf(maskOf(image))), image);
  NeighborhoodField volume{{3, 4, 5},
                           {{2, 1, 1, false, 0}, {3, 1, 1, false, 1}, {3, 1, 1, false, 1}}};
  EXPECT_EQ(findNeighborhoods(keysOf(maskOf(volume))), volume);
}

TEST_F(VisibleKeysTest, IsNothingWhereAQueryDoesNotSeeItself) {
  Mask mask(4, std::vector<bool>(4, true));
  for (int i = 0; i < 4; ++i)
    mask[i][i] = false;
  EXPECT_FALSE(findNeighborhoods(keysOf(mask)));
  EXPECT_FALSE(findNeighborhoods(keysOf(Mask(4, std::vector<bool>(4, false)))));
  EXPECT_FALSE(findNeighborhoods(VisibleKeys()));
}

} // namespace
