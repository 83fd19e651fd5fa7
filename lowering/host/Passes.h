// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the program of one rank to code that the host runs, whatever runs the kernels.

#ifndef SHARDC_LOWERING_HOST_PASSES_H
#define SHARDC_LOWERING_HOST_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::host {

#define GEN_PASS_DECL
#include "lowering/host/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/host/Passes.h.inc"

} // namespace shardc::host

#endif // SHARDC_LOWERING_HOST_PASSES_H
