// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of partial gradients; see Passes.td.
#ifndef SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_H
#define SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

/// What a gradient becomes that is redistributed to a partial value, but is none.
enum class PartialGradients {
  Off,       ///< partial, as the redistribution says
  Replicate, ///< replicated (G3)
  Cheapest,  ///< what moves the fewest bytes
};

#define GEN_PASS_DECL
#include "passes/gradient/partial/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/gradient/partial/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_PARTIAL_PASSES_H
