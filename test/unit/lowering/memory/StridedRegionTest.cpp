// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions against sets of elements, counted one by one.

#include "lowering/memory/core/StridedRegion.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace shardc::memory;

namespace {

std::set<int64_t> elementsOf(const StridedRegion &region) {
  std::set<int64_t> elements;
  if (region.isEmpty())
    return elements;
  elements.insert(region.offset);
  for (auto [size, stride] : region.dims) {
    std::set<int64_t> all;
    for (int64_t step = 0; step < size; ++step)
      for (int64_t element : elements)
        all.insert(element + step * stride);
    elements = std::move(all);
  }
  return elements;
}

struct Random {
  std::mt19937 engine;
  int64_t operator()(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }

  /// Anything: dims that overlap, go backwards, repeat or have nothing.
  StridedRegion any() {
    StridedRegion region{(*this)(-20, 60), {}};
    for (int64_t d = (*this)(0, 3); d > 0; --d)
      region.dims.push_back({(*this)(0, 20) ? (*this)(1, 5) : 0, (*this)(-7, 25)});
    return region;
  }

  /// A part of a dense tensor, its dims in any order.
  StridedRegion part(const std::vector<int64_t> &shape) {
    StridedRegion region;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      int64_t begin = (*this)(0, shape[d] - 1), step = (*this)(1, 2);
      bool all = (*this)(0, 1);
      region.offset += all ? 0 : begin * stride;
      int64_t size = all ? shape[d] : (shape[d] - begin + step - 1) / step;
      region.dims.push_back({size, all ? stride : step * stride});
      stride *= shape[d];
    }
    std::shuffle(region.dims.begin(), region.dims.end(), engine);
    return region;
  }
};

void compare(const StridedRegion &region, const std::vector<StridedRegion> &others) {
  std::set<int64_t> elements = elementsOf(region), outside = elements;
  for (const StridedRegion &other : others)
    for (int64_t element : elementsOf(other))
      outside.erase(element);
  std::optional<int64_t> found = findOutside(region, others);
  EXPECT_EQ(found.has_value(), !outside.empty());
  if (found)
    EXPECT_TRUE(outside.count(*found)) << *found;
  for (const StridedRegion &other : others) {
    std::set<int64_t> common;
    for (int64_t element : elementsOf(other))
      if (elements.count(element))
        common.insert(element);
    std::optional<int64_t> shared = findCommon(region, other);
    EXPECT_EQ(shared.has_value(), !common.empty());
    if (shared)
      EXPECT_TRUE(common.count(*shared)) << *shared;
  }
}

TEST(StridedRegion, agreesWithSetsOfElements) {
  Random random;
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    std::vector<StridedRegion> others;
    for (int64_t n = random(0, 4); n > 0; --n)
      others.push_back(random.any());
    compare(random.any(), others);
  }
}

TEST(StridedRegion, agreesForPartsOfOneTensor) {
  Random random;
  int covered = 0;
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    std::vector<int64_t> shape;
    for (int64_t rank = random(1, 3); rank > 0; --rank)
      shape.push_back(random(1, 5));
    std::vector<StridedRegion> others;
    for (int64_t n = random(0, 5); n > 0; --n)
      others.push_back(random.part(shape));
    StridedRegion region = random.part(shape);
    covered += !findOutside(region, others);
    compare(region, others);
  }
  EXPECT_GT(covered, 500);
  EXPECT_LT(covered, 3500);
}

/// Columns of a tensor that is far too large to look at its elements, as a concatenation writes
/// them.
TEST(StridedRegion, doesNotCountElements) {
  int64_t rows = 1 << 30, width = 3 * 768;
  std::vector<StridedRegion> columns;
  for (int64_t part = 0; part < 3; ++part)
    columns.push_back({part * 768, {{rows, width}, {768, 1}}});
  StridedRegion whole{0, {{rows * width, 1}}};
  EXPECT_EQ(findOutside(whole, columns), std::nullopt);
  columns[1].dims[1].size = 767;
  EXPECT_EQ(findOutside(whole, columns), 2 * 768 - 1);
  EXPECT_EQ(findCommon(columns[0], columns[1]), std::nullopt);
}

} // namespace
