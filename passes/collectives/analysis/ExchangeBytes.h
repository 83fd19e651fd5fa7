// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much moves in an all-to-all within one dim. Each pair of ranks has a count of its own there,
// so that neither the operand nor the result says it: a rank keeps a part, and may give away or get
// more than the others.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_EXCHANGEBYTES_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_EXCHANGEBYTES_H

#include "passes/specialize/Devices.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Whether the tensor is cut and concatenated along one dim by lists.
bool isExchange(dist::CollectiveOpInterface op, unsigned tensor);

/// The devices that run a function: those of its variant, or all.
llvm::SmallVector<int64_t> devicesThatRun(mlir::func::FuncOp function, const Devices &devices);

/// Bytes that a device gives to others or gets of them, whichever is more: the most of `runBy`.
/// Where counts depend on values, the smaller of operand and result in equal pieces.
/// Nothing where the collective has no exchange, or where a count is not known.
std::optional<uint64_t> exchangedBytes(dist::CollectiveOpInterface op,
                                       llvm::ArrayRef<int64_t> runBy, Devices &devices);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_EXCHANGEBYTES_H
