// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When does an op that moves elements around need nothing but its own rank's elements, and where
// are they? Answers for slices, concatenations and views of dims that are split over a mesh, as
// numbers per position of the mesh (row-major order of coordinates). Sizes are known: a symbolic
// dim is not asked.
//
// Everything is computed on intervals of global indices, so the work is proportional to the number
// of intervals that the ranks hold, not to the number of elements.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_LOCALINDEXING_H
#define SHARDC_PASSES_LOCALIZE_CORE_LOCALINDEXING_H

#include "dialects/sharding/Layout.h"

namespace shardc {

/// One dim as its tensor is laid out: its global size and how that is split.
struct SplitDim {
  int64_t size = 0;
  DimSplit split;
};

/// `result[j] = input[start + step * j]` for all j < result.size (step >= 1). Where every rank
/// finds all of its elements of the result among its own elements of the input, in order and `step`
/// apart: the local index of the first one, per position (0 for a rank that holds none). Nothing
/// otherwise.
std::optional<std::vector<int64_t>> localSliceStarts(const Mesh &mesh, const SplitDim &input,
                                                     const SplitDim &result, int64_t start,
                                                     int64_t step);

/// Whether concatenating what a rank holds of each input, in order, gives what it holds of the
/// concatenation, on every rank.
bool isLocalConcatenation(const Mesh &mesh, const std::vector<SplitDim> &inputs,
                          const SplitDim &result);

/// What a rank holds of several dims, as intervals of the row-major index over all of them.
std::vector<Run> linearRuns(const std::vector<SplitDim> &dims, std::span<const int64_t> coordinate);

/// Whether the row-major elements that a rank holds of `input` are, in order, those that it holds
/// of `result`, on every rank: a view between the two needs no communication. Sizes have equal
/// products.
bool isLocalView(const Mesh &mesh, const std::vector<SplitDim> &input,
                 const std::vector<SplitDim> &result);

/// Consecutive dims of two shapes whose products agree, as short as possible: half-open ranges of
/// dims [begin, end) on both sides. Dims of size 1 go to the group before them. Both shapes are
/// static and hold equally many elements, at least one.
struct DimGroup {
  unsigned inputBegin, inputEnd, resultBegin, resultEnd;
};
std::vector<DimGroup> groupViewDims(std::span<const int64_t> input,
                                    std::span<const int64_t> result);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_LOCALINDEXING_H
