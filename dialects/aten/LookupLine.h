// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookups along a dim whose positions are computed when the program runs, but are known to be near
// a straight line, as those of resampling and of pads by the elements at the ends are: a rank that
// has a chunk of the result needs little more of the table than its own chunk of that.
#ifndef SHARDC_DIALECTS_ATEN_LOOKUPLINE_H
#define SHARDC_DIALECTS_ATEN_LOOKUPLINE_H

#include "dialects/aten/Aten.h"

namespace shardc::aten {

/// Discardable attribute of aten.index_select, and of an aten.index_put that adds along one dim:
/// whoever sets it has proved it of the positions. Element i of the result (of the values) is at
/// a position between x - `before` and x + `after`, cut to those that the dim has, with
///
///   x = floor(((2 i + half) numerator - shift denominator) / (2 denominator)),
///
/// or farther on both sides by floor(i / 2^20) + floor(x / 2^20), as f32 rounds large numbers.
struct LookupLine {
  /// Positions for so many elements; where both are 0, the numbers of positions and of elements
  /// themselves, without the last of each where the line `alignsCorners`.
  int64_t numerator = 0, denominator = 0;
  bool alignsCorners = false;
  int64_t half = 0; ///< 0 or 1
  int64_t shift = 0;
  int64_t before = 0, after = 0;

  bool followsSizes() const { return denominator == 0; }

  /// Of fewer elements and positions, rounding adds nothing to `before` and `after`.
  static constexpr int64_t kExact = 1 << 20;
  /// No number is larger, so that products with sizes fit 64 bits.
  static constexpr int64_t kMost = 1 << 20;

  void setOn(mlir::Operation *op) const;
  static std::optional<LookupLine> of(mlir::Operation *op);
  /// Reports what is no line, or is on another op.
  static mlir::LogicalResult verify(mlir::Operation *op, mlir::Attribute value);
};

inline constexpr llvm::StringLiteral kLookupLineAttr = "aten.lookup_line";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_LOOKUPLINE_H
