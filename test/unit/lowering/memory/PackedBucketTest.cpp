// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Packing as a definition says it: position by position, tensor by tensor, element by element.

#include "lowering/memory/core/PackedBucket.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace shardc::memory;

namespace {

using Data = std::vector<std::vector<int>>;

/// Every element of every tensor is a number of its own.
Data numbered(const std::vector<BucketTensor> &tensors) {
  Data data;
  int next = 1;
  for (const BucketTensor &t : tensors) {
    int64_t extent = std::accumulate(t.extents.begin(), t.extents.end(), int64_t(0));
    data.emplace_back(t.outer * extent * t.inner);
    std::iota(data.back().begin(), data.back().end(), next);
    next += data.back().size();
  }
  return data;
}

std::vector<int> packByDefinition(const std::vector<BucketTensor> &tensors, const Data &data) {
  std::vector<int> packed;
  for (size_t p = 0; p < tensors.front().extents.size(); ++p)
    for (size_t i = 0; i < tensors.size(); ++i) {
      const BucketTensor &t = tensors[i];
      int64_t whole = std::accumulate(t.extents.begin(), t.extents.end(), int64_t(0));
      int64_t start = std::accumulate(t.extents.begin(), t.extents.begin() + p, int64_t(0));
      for (int64_t o = 0; o < t.outer; ++o)
        for (int64_t e = 0; e < t.extents[p]; ++e)
          for (int64_t k = 0; k < t.inner; ++k)
            packed.push_back(data[i][(o * whole + start + e) * t.inner + k]);
    }
  return packed;
}

std::vector<int> packByCopies(const PackedBucket &bucket, const Data &data) {
  std::vector<int> packed(bucket.elements, -1);
  for (const BucketCopy &c : bucket.copies)
    for (int64_t p = 0; p < c.sizes[0]; ++p)
      for (int64_t o = 0; o < c.sizes[1]; ++o)
        for (int64_t e = 0; e < c.sizes[2]; ++e)
          for (int64_t k = 0; k < c.sizes[3]; ++k) {
            auto at = [&](int64_t offset, const int64_t *s) {
              return offset + p * s[0] + o * s[1] + e * s[2] + k * s[3];
            };
            packed.at(at(c.packedOffset, c.packedStrides)) =
                data.at(c.tensor).at(at(c.tensorOffset, c.tensorStrides));
          }
  return packed;
}

void check(const std::vector<BucketTensor> &tensors, size_t copies) {
  Data data = numbered(tensors);
  PackedBucket bucket = packBucket(tensors);
  EXPECT_EQ(packByCopies(bucket, data), packByDefinition(tensors, data));
  EXPECT_EQ(std::accumulate(bucket.parts.begin(), bucket.parts.end(), int64_t(0)), bucket.elements);
  EXPECT_EQ(bucket.copies.size(), copies);
}

TEST(PackedBucket, EvenPartsTakeOneCopyATensor) {
  check({{1, 3, {2, 2}}, {4, 1, {3, 3}}, {2, 5, {1, 1}}}, 3);
}
TEST(PackedBucket, UnevenPartsTakeOneCopyAPosition) { check({{1, 3, {2, 1}}, {4, 1, {3, 3}}}, 4); }
TEST(PackedBucket, EmptyPartsAreNotCopied) {
  check({{2, 3, {2, 1, 0, 0}}, {1, 7, {1, 1, 1, 0}}}, 5);
  check({{1, 0, {2, 2}}, {1, 1, {0, 0}}}, 0);
}
TEST(PackedBucket, WhatIsNotDividedLiesSideBySide) {
  PackedBucket bucket = packBucket(std::vector<BucketTensor>{{1, 4, {3}}, {1, 5, {1}}});
  EXPECT_EQ(bucket.parts, std::vector<int64_t>{17});
  EXPECT_EQ(bucket.copies[1].packedOffset, 12);
}
TEST(PackedBucket, OfNothing) { EXPECT_EQ(packBucket({}).elements, 0); }

TEST(ChunkExtents, AsTorchChunk) {
  using List = std::vector<int64_t>;
  EXPECT_EQ(chunkExtents(7, 4), (List{2, 2, 2, 1}));
  EXPECT_EQ(chunkExtents(5, 4), (List{2, 2, 1, 0}));
  EXPECT_EQ(chunkExtents(2, 4), (List{1, 1, 0, 0}));
  EXPECT_EQ(chunkExtents(0, 2), (List{0, 0}));
}

} // namespace
