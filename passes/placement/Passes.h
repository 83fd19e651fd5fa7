// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes of imported -> placed; see Passes.td.
#ifndef SHARDC_PASSES_PLACEMENT_PASSES_H
#define SHARDC_PASSES_PLACEMENT_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/placement/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/placement/Passes.h.inc"

/// imported -> placed: dist-apply-plan, dist-propagate, dist-place, and the check of the result.
void buildPlacePipeline(mlir::OpPassManager &passes, const ApplyPlanOptions &plan);

/// Makes `--shardc-place` known, with the options of dist-apply-plan.
void registerPlacePipeline();

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_PASSES_H
