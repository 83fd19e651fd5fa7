// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H
#define SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::memory {

/// The entries of a module, those that are one function on different ranks (`dist-specialize`)
/// together, in order of their first.
llvm::SmallVector<llvm::SmallVector<mlir::func::FuncOp>> groupVariants(mlir::ModuleOp module);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_ENTRYVARIANTS_H
