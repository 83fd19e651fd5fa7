// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The training step; see Passes.td.
#ifndef SHARDC_PASSES_TRAINING_PASSES_H
#define SHARDC_PASSES_TRAINING_PASSES_H

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/training/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/training/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_TRAINING_PASSES_H
