// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one rank does for a single step of redistribution: a collective, or a choice among what it
// already has.
#ifndef SHARDC_PASSES_LOCALIZE_REDISTRIBUTESTEPS_H
#define SHARDC_PASSES_LOCALIZE_REDISTRIBUTESTEPS_H

#include "passes/localize/LocalIndices.h"

namespace shardc {

class Localizer;

/// Reduction over all ranks that differ on these axes only.
mlir::Value emitAllReduce(LocalIndices indices, mlir::Value value, llvm::ArrayRef<unsigned> axes,
                          Reduction reduction);

/// Concatenation of a dim over the `count` innermost axes of its split. None of them has blocks.
mlir::Value emitAllGather(LocalIndices indices, mlir::Value value, const GlobalSize &size,
                          const DimSplit &split, size_t count, int64_t dim);

/// This rank's part of a tensor that every rank has, by the S placements of `layout`. `sizes` are
/// its global sizes; without them, those of result 0 of the present op.
mlir::Value emitShard(Localizer &localizer, mlir::OpBuilder &builder, mlir::Value whole,
                      const Layout &layout, llvm::SmallVector<GlobalSize> sizes = {});

/// The local form of a redistribute that is one planned step. Fails with a diagnostic where no step
/// has been planned.
mlir::FailureOr<mlir::Value> emitStep(Localizer &localizer, mlir::OpBuilder &builder,
                                      dist::RedistributeOp op, mlir::Value local);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_REDISTRIBUTESTEPS_H
