// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What one rank does in an exchange of blocks: it cuts a message for every member of its group out
// of what it has, sends them all at once, and puts what arrives together. Where every rank's shard
// goes to one other as it is, that is a permute.
#ifndef SHARDC_PASSES_LOCALIZE_EXCHANGE_H
#define SHARDC_PASSES_LOCALIZE_EXCHANGE_H

#include "dialects/aten/Emitter.h"
#include "passes/localize/LocalIndices.h"
#include "passes/redistribute/core/BlockExchange.h"

namespace shardc {

/// `sizes` are the sizes of `local` on this rank. Those of the dims that are not exchanged are the
/// result's as well.
mlir::Value emitExchange(mlir::OpBuilder &builder, mlir::Location loc, const StepExchange &step,
                         mlir::Value local, llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// The same where sizes of exchanged dims are known only when the program runs: the bounds of
/// messages are computed from `globals`, the global sizes of all dims, which are `shape` where they
/// are numbers. It is on one mesh.
mlir::Value emitSymbolicExchange(LocalIndices indices, const RedistributeStep &step,
                                 llvm::ArrayRef<int64_t> shape, mlir::Value local,
                                 llvm::ArrayRef<mlir::OpFoldResult> sizes,
                                 llvm::ArrayRef<GlobalSize> globals);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_EXCHANGE_H
