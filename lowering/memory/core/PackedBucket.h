// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A bucket as one buffer: where each tensor of a variadic collective lies in it, and what is copied
// between it and the tensors. IR-free; all numbers are elements.
//
// A collective has a side that is whole (the result of a gather, the operand of a scatter) and one
// that is this rank's part. Parts of several tensors lie side by side. On the whole side the part
// of position p of the group comes first for every tensor, then that of position p + 1: what one
// rank sends or receives is contiguous, so that the collective runs on dim 0 of a vector.

#ifndef SHARDC_LOWERING_MEMORY_CORE_PACKEDBUCKET_H
#define SHARDC_LOWERING_MEMORY_CORE_PACKEDBUCKET_H

#include <cstdint>
#include <span>
#include <vector>

namespace shardc::memory {

/// A tensor seen as [outer, extent, inner], divided along the middle dim.
struct BucketTensor {
  int64_t outer = 1;
  int64_t inner = 1;
  /// Of the middle dim, one for each position of the group; what is not divided (all-reduce) has
  /// one.
  std::vector<int64_t> extents;
};

/// A block of up to four dims, [positions, outer, extent, inner], between the packed vector and a
/// dense tensor; both sides are given by an offset and strides.
struct BucketCopy {
  unsigned tensor = 0;
  int64_t sizes[4] = {};
  int64_t packedOffset = 0, packedStrides[4] = {};
  int64_t tensorOffset = 0, tensorStrides[4] = {};
};

struct PackedBucket {
  /// Elements of each position's part; one where nothing is divided.
  std::vector<int64_t> parts;
  /// All parts together.
  int64_t elements = 0;
  /// Between the whole side and the tensors, without empty blocks. One for each tensor where all
  /// positions have as much as the first, else one for each position.
  std::vector<BucketCopy> copies;
};

/// Positions of all tensors are those of one group: `extents` are equally many.
PackedBucket packBucket(std::span<const BucketTensor> tensors);

/// What PyTorch's chunk gives each of `positions` of `extent`: the same, then less, then 0.
std::vector<int64_t> chunkExtents(int64_t extent, int64_t positions);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_CORE_PACKEDBUCKET_H
