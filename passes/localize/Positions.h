// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions in a dim of operand 0 that is sharded: what they are on one rank. Lookups and scatters
// share it.
#ifndef SHARDC_PASSES_LOCALIZE_POSITIONS_H
#define SHARDC_PASSES_LOCALIZE_POSITIONS_H

#include "passes/localize/Localizer.h"

namespace shardc {

struct LocalPositions {
  /// Local positions where the mask holds. Elsewhere 0, or the size of this rank's part for an op
  /// that `skips`, but out of range where no rank has the global position, so that the op refuses
  /// it.
  mlir::Value index;
  mlir::Value mask; ///< shaped as the index: this rank has the position
  int64_t size;     ///< of the whole dim; dynamic where symbolic
};

/// Nothing after a diagnostic.
std::optional<LocalPositions> localPositions(Localizer &localizer, mlir::OpBuilder &builder,
                                             mlir::Value index, int64_t dim, bool skips = false);

/// Global positions of a dim, of which negative ones count from its end.
mlir::Value fromStart(Localizer &localizer, mlir::OpBuilder &builder, mlir::Value index,
                      int64_t dim);

/// A mask over the broadcast indices of dims `at` of a tensor of this rank, with dims of size 1 for
/// those of the indexed tensor that come after them.
mlir::Value alignMask(Emitter &emit, mlir::Value mask, llvm::ArrayRef<int64_t> at, int64_t rank);

/// Zero where the mask does not hold.
mlir::Value masked(Emitter &emit, mlir::Value values, mlir::Value mask);

/// Tells an op the sizes of the whole tensor, for its message about positions out of range.
void nameTableSizes(mlir::Operation *op, llvm::ArrayRef<int64_t> sizes);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_POSITIONS_H
