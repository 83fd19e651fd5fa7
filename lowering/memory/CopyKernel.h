// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of strided memory, as kernels.

#ifndef SHARDC_LOWERING_MEMORY_COPYKERNEL_H
#define SHARDC_LOWERING_MEMORY_COPYKERNEL_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

namespace shardc::memory {

/// Launches a new kernel that copies `from` to `to`, memrefs of one shape that do not overlap.
void launchCopy(mlir::OpBuilder &builder, mlir::Location loc, mlir::SymbolTable &symbols,
                mlir::Value from, mlir::Value to);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_COPYKERNEL_H
