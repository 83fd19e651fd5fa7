// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/core/PackedBucket.h"

#include <algorithm>
#include <numeric>

namespace shardc::memory {
namespace {

int64_t sum(const std::vector<int64_t> &values) {
  return std::accumulate(values.begin(), values.end(), int64_t(0));
}

bool isEven(const BucketTensor &tensor) {
  return std::all_of(tensor.extents.begin(), tensor.extents.end(),
                     [&](int64_t extent) { return extent == tensor.extents.front(); });
}

/// `count` positions from the one on whose part starts at `packed`, `stride` apart.
BucketCopy blockOf(const BucketTensor &tensor, unsigned index, int64_t count, int64_t extent,
                   int64_t packed, int64_t stride, int64_t start) {
  int64_t row = sum(tensor.extents) * tensor.inner;
  BucketCopy copy;
  copy.tensor = index;
  copy.packedOffset = packed;
  copy.tensorOffset = start * tensor.inner;
  const int64_t sizes[] = {count, tensor.outer, extent, tensor.inner};
  const int64_t packedStrides[] = {stride, extent * tensor.inner, tensor.inner, 1};
  const int64_t tensorStrides[] = {extent * tensor.inner, row, tensor.inner, 1};
  std::copy_n(sizes, 4, copy.sizes);
  std::copy_n(packedStrides, 4, copy.packedStrides);
  std::copy_n(tensorStrides, 4, copy.tensorStrides);
  return copy;
}

} // namespace

std::vector<int64_t> chunkExtents(int64_t extent, int64_t positions) {
  int64_t chunk = (extent + positions - 1) / positions;
  std::vector<int64_t> extents;
  for (int64_t p = 0; p < positions; ++p)
    extents.push_back(std::clamp<int64_t>(extent - p * chunk, 0, chunk));
  return extents;
}

PackedBucket packBucket(std::span<const BucketTensor> tensors) {
  PackedBucket bucket;
  if (tensors.empty())
    return bucket;
  size_t positions = tensors.front().extents.size();
  bucket.parts.assign(positions, 0);
  bool even = true;
  for (const BucketTensor &tensor : tensors) {
    even &= isEven(tensor);
    for (size_t p = 0; p < positions; ++p)
      bucket.parts[p] += tensor.outer * tensor.extents[p] * tensor.inner;
  }
  bucket.elements = sum(bucket.parts);

  int64_t partStart = 0; // of position p
  for (size_t p = 0; p < (even ? std::min<size_t>(1, positions) : positions); ++p) {
    int64_t at = partStart;
    for (unsigned i = 0; i < tensors.size(); ++i) {
      const BucketTensor &tensor = tensors[i];
      int64_t extent = tensor.extents[p];
      int64_t start =
          std::accumulate(tensor.extents.begin(), tensor.extents.begin() + p, int64_t(0));
      int64_t size = tensor.outer * extent * tensor.inner;
      if (size > 0)
        bucket.copies.push_back(blockOf(tensor, i, even ? positions : 1, extent, at,
                                        even ? bucket.parts.front() : 0, start));
      at += size;
    }
    partStart = at;
  }
  return bucket;
}

} // namespace shardc::memory
