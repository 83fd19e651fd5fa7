// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From training mode to inference mode; see Passes.td.
#ifndef SHARDC_PASSES_INFERENCE_PASSES_H
#define SHARDC_PASSES_INFERENCE_PASSES_H

#include "dialects/aten/Aten.h"
#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

/// What `aten-to-inference` has done to a function.
struct InferenceChanges {
  unsigned dropouts = 0, attentions = 0, norms = 0, mutations = 0;
};

/// Brings a function of one block into its inference form. On failure, which has been reported, the
/// function is not of use any more.
mlir::FailureOr<InferenceChanges> bringToInference(mlir::func::FuncOp function);

/// For a function that stays in training mode: attention that drops weights is plain ops alone.
void forgetAttention(mlir::func::FuncOp function);

#define GEN_PASS_DECL
#include "passes/inference/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/inference/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_INFERENCE_PASSES_H
