// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Halos (Halos.h) along a dim whose size is known only when the program runs: what positions cover
// is index arithmetic, and ranks exchange intervals.
#ifndef SHARDC_PASSES_LOCALIZE_SYMBOLICHALOS_H
#define SHARDC_PASSES_LOCALIZE_SYMBOLICHALOS_H

#include "dialects/aten/LookupLine.h"
#include "passes/localize/IntervalExchange.h"
#include "passes/localize/Localizer.h"

namespace shardc {

/// A dim of an image and positions in it: position i covers `extent` elements from element
/// `origin` + i * `stride` on, of which some may lie before or behind the image. Or, where it
/// `isReversed`, the element that has i behind it.
struct SymbolicHalo {
  int64_t dim; ///< of the image and of what is covered
  GlobalSize size, count;
  DimSplit image, positions;
  mlir::Value origin;
  int64_t stride = 1, extent = 1;
  bool isReversed = false;
  /// Where a position covers the elements that a lookup there may read, instead.
  std::optional<aten::LookupLine> line = {};
  /// Where the image's elements are adaptive parts of the positions, and each position covers those
  /// that it is in, instead.
  bool coversParts = false;
  /// How far, in ranks, elements are from positions over them, at most; nothing where that is not
  /// known.
  std::optional<int64_t> farthest = {};
};
/// Finds how far that is, where origin and the sizes' expressions say it.
void findFarthest(Localizer &localizer, SymbolicHalo &halo);

/// What the positions of a rank cover (aten::Cover), as index values.
struct IndexCover {
  IndexInterval elements; ///< of the image
  mlir::Value length;     ///< of these
  IndexInterval inside;   ///< where they are in what is covered, which may begin before the image
  mlir::Value size;       ///< of what is covered
  mlir::Value begin;      ///< of what is covered, as an index of the image
};
IndexCover coverOf(LocalIndices &indices, const SymbolicHalo &halo, CoordinateOf coordinateOf);
/// Of the present rank.
IndexCover ownCover(LocalIndices &indices, const SymbolicHalo &halo);

/// The part of the image that this rank's positions cover, with `fill` before and behind the image.
/// `sizes` are those of `local`, and become those of the result.
mlir::Value coveredPart(LocalIndices indices, const SymbolicHalo &halo, mlir::Value local,
                        llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes, double fill);

/// The elements among them alone, in ascending order.
mlir::Value coveredElements(LocalIndices indices, const SymbolicHalo &halo, mlir::Value local,
                            llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);

/// `covered` has something for every element of the image that this rank's positions cover. Returns
/// the sum of what all ranks have for the elements of this one. Sizes as above.
mlir::Value sumOfCovered(LocalIndices indices, const SymbolicHalo &halo, mlir::Value covered,
                         llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_SYMBOLICHALOS_H
