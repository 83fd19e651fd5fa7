// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_APPLYCHUNKS_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_APPLYCHUNKS_H

#include "passes/collectives/chunk/FunctionRules.h"
#include "passes/collectives/chunk/core/ChunkOrder.h"

namespace shardc {

/// Puts regions of a function into pieces, in the order of `orderChunks`. The program's nodes are
/// those of the function as it is. `erased` is told of every op that goes.
void applyChunks(mlir::func::FuncOp function, const ProgramGraph &program,
                 const FunctionRules &rules, llvm::ArrayRef<collectives::ChunkChoice> choices,
                 llvm::function_ref<void(mlir::Operation *)> erased);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_APPLYCHUNKS_H
