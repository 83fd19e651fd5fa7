// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Along a dim, ranks make parts of elements that others own: the owners get these parts, and add
// them up or take the largest.
#ifndef SHARDC_PASSES_LOCALIZE_MADEPARTS_H
#define SHARDC_PASSES_LOCALIZE_MADEPARTS_H

#include "passes/localize/MovePieces.h"

namespace shardc {

/// What a rank holds of a dim that is in one piece on each.
Run pieceOf(const Mesh &mesh, const SplitDim &dim, int64_t position);
/// The same of every position.
std::vector<Run> piecesOf(const Mesh &mesh, const SplitDim &dim);

/// The type of `value` with the sizes that are numbers.
mlir::RankedTensorType typeOfSizes(mlir::Value value, llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// An interval of a tensor, and where it begins in something that is made of such intervals.
struct PlacedRun {
  Run run;
  int64_t begin = 0;

  int64_t end() const { return begin + run.size(); }
};

/// For each position of the mesh as many elements along a dim as `lengths` says: intervals of
/// source 0, which has `size` elements, in order, and before, between and behind them new elements,
/// which are source 1. Says nothing of the other dims.
PieceTarget spreadRuns(int64_t size, llvm::ArrayRef<llvm::ArrayRef<PlacedRun>> placed,
                       llvm::ArrayRef<int64_t> lengths);

struct MadeDim {
  int64_t dim; ///< of the tensor
  /// Of which elements each rank has made a part. In what it has, these intervals follow each
  /// other; unlike what ranks own, they may overlap those of others.
  HeldDim made;
  SplitDim owned;
};

/// What each rank owns, in order: at both ends rows to which others add, and between them rows that
/// nobody else has made a part of. Where a part of all ranks is empty, it is left out.
llvm::SmallVector<std::vector<Run>, 3> ownedParts(const Mesh &mesh, const MadeDim &dim);

/// `value` is what this rank has made. Returns, for the elements that it owns, the sum (or the
/// largest) of what all ranks have made; `own`, where that is not empty, is what this rank has made
/// of each of its `ownedParts` besides. `sizes` are those of `value`, and become those of the
/// result. Rows to which nobody adds are only moved.
mlir::Value sumOfMade(Localizer &localizer, mlir::OpBuilder &builder, const MadeDim &dim,
                      mlir::Value value, llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes,
                      Reduction reduction, llvm::ArrayRef<mlir::Value> own = {});

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_MADEPARTS_H
