// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What dist-verify-schedule checks. Each check emits all errors that it finds.

#ifndef SHARDC_PASSES_COLLECTIVES_VERIFY_CHECKS_H
#define SHARDC_PASSES_COLLECTIVES_VERIFY_CHECKS_H

#include "passes/collectives/verify/Sequence.h"
#include "passes/specialize/Devices.h"

namespace shardc {

/// One function on its own: collectives stand where every rank comes by, futures are waited for or
/// returned once (S1).
mlir::LogicalResult checkFunctionSchedule(mlir::func::FuncOp function);

/// One function of several, and the devices that run it.
struct Variant {
  mlir::func::FuncOp function;
  std::vector<int64_t> devices;
};

/// Projects what became one function for each kind of rank to the ranks and compares. Shows the
/// first pair of collectives that differ (S1).
mlir::LogicalResult compareVariants(llvm::ArrayRef<Variant> variants, Devices &devices);

/// What each device holds is what collectives say its position holds.
mlir::LogicalResult checkPositions(const Variant &variant, Devices &devices);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_VERIFY_CHECKS_H
