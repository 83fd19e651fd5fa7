// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes of imported -> placed; see Passes.td.
#ifndef SHARDC_PASSES_PLACEMENT_PASSES_H
#define SHARDC_PASSES_PLACEMENT_PASSES_H

#include "dialects/interfaces/PassStatistic.h"
#include "dialects/interfaces/TextOption.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/placement/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/placement/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_PASSES_H
