// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from aten to linalg, for all targets.

#ifndef SHARDC_LOWERING_LINALG_PASSES_H
#define SHARDC_LOWERING_LINALG_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "lowering/linalg/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/linalg/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_PASSES_H
