// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the backward keeps and what it computes again; see Passes.td.
#ifndef SHARDC_PASSES_RECOMPUTE_PASSES_H
#define SHARDC_PASSES_RECOMPUTE_PASSES_H

#include "dialects/interfaces/PassStatistic.h"
#include "dialects/interfaces/TextOption.h"
#include "passes/cost/core/TargetDescription.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

/// What becomes of weights that are gathered for the forward, in the backward.
enum class ReshardAfterForward {
  Auto,  ///< as the plan says, else kept, or gathered again where a memory limit asks for it
  True,  ///< gathered again
  False, ///< kept
};

#define GEN_PASS_DECL
#include "passes/recompute/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/recompute/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_RECOMPUTE_PASSES_H
