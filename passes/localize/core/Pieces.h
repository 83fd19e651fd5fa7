// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a dim is made of: intervals of other dims, one after the other. Parts, joins, pads and
// reversals of pieces are pieces, so that any number of such ops in a row are one rearrangement.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_PIECES_H
#define SHARDC_PASSES_LOCALIZE_CORE_PIECES_H

#include <cstdint>
#include <limits>
#include <vector>

namespace shardc {

/// `count` elements of a dim: element i is element `start + step * i` of dim `source`.
struct Piece {
  unsigned source = 0; ///< what the number means is up to the caller
  int64_t count = 0;
  int64_t start = 0;
  int64_t step = 1; ///< not 0
  bool operator==(const Piece &) const = default;
};

using Pieces = std::vector<Piece>;

/// The source of elements that are in no tensor, as those that a pad adds.
constexpr unsigned kNewElements = std::numeric_limits<unsigned>::max();

int64_t sizeOf(const Pieces &pieces);
/// Appends a piece, as more of the last one where it goes on in the same way. Nothing where it is
/// empty.
void append(Pieces &pieces, Piece piece);
/// Elements start, start + step, ... (`count` of them, all in range) of what `pieces` make.
Pieces select(const Pieces &pieces, int64_t start, int64_t step, int64_t count);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_PIECES_H
