// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H
#define SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::memory {

/// The entries of a module, those that are one function on different ranks (`dist-specialize`)
/// together, in order of their first.
llvm::SmallVector<llvm::SmallVector<mlir::func::FuncOp>> groupVariants(mlir::ModuleOp module);

/// The collectives of an entry in order, each with its number in the sequence that all ranks share:
/// `dist.ordinal` where the ranks of this entry run a part of the sequence, else its place.
std::vector<std::pair<int64_t, exec::CollectiveCallInterface>>
collectivesOf(mlir::func::FuncOp entry);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H
