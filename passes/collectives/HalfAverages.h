// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_HALFAVERAGES_H
#define SHARDC_PASSES_COLLECTIVES_HALFAVERAGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Makes averages of f16 tensors sums between two scalings (B5), so that no partial sum of f16
/// overflows where a transport adds in f16: operands are divided by a power of two near the root of
/// the number of ranks, which is exact, results by what is left. What is in flight when the
/// function returns has nowhere to be scaled and stays. Returns how many averages it changed.
uint64_t scaleHalfAverages(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_HALFAVERAGES_H
