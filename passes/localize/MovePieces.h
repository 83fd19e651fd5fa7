// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one rank does for results that are made of pieces of tensors along a sharded dim. What a
// rank lacks of them comes in one exchange for all results and all tensors that are sharded over
// the same axes; what it has already stays, and where no rank lacks anything there is no
// collective.
#ifndef SHARDC_PASSES_LOCALIZE_MOVEPIECES_H
#define SHARDC_PASSES_LOCALIZE_MOVEPIECES_H

#include "passes/localize/Localizer.h"
#include "passes/localize/core/Pieces.h"

namespace shardc {

/// A dim, and who has what of it.
struct HeldDim {
  int64_t size = 0;
  llvm::SmallVector<std::vector<Run>> runs; ///< ascending, for every position of the mesh
  std::vector<unsigned> axes;               ///< by which the runs differ
};
HeldDim heldDim(const Mesh &mesh, const SplitDim &dim);

/// What pieces come from.
struct PieceSource {
  mlir::Value local; ///< null: elements of one value, as many as are asked for
  llvm::SmallVector<mlir::OpFoldResult> sizes;
  HeldDim dim;
  double value = 0;
};

/// What new elements are, in an element type that may have no fractions.
mlir::Value newNumber(Emitter &emit, double number, mlir::Type elementType);

/// What is made of pieces; their sources are positions in a list.
struct PieceTarget {
  Pieces pieces;
  HeldDim dim;
  llvm::SmallVector<mlir::OpFoldResult> sizes; ///< on this rank
  mlir::RankedTensorType type;                 ///< likewise
};

/// One value for each target. All have the other dims of the sources. What is made `beside` them,
/// by other ops from the same sources, is fetched in the same exchange, of which CSE leaves one.
llvm::SmallVector<mlir::Value> movePieces(Localizer &localizer, mlir::OpBuilder &builder,
                                          int64_t dim, llvm::ArrayRef<PieceSource> sources,
                                          llvm::ArrayRef<PieceTarget> targets,
                                          llvm::ArrayRef<PieceTarget> beside = {});

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_MOVEPIECES_H
