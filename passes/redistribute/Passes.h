// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redistributions taken apart; see Passes.td.
#ifndef SHARDC_PASSES_REDISTRIBUTE_PASSES_H
#define SHARDC_PASSES_REDISTRIBUTE_PASSES_H

#include "dialects/interfaces/PassStatistic.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/redistribute/core/Planner.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

/// How redistributions are taken apart.
enum class PlannerKind { Cheapest, Greedy };

#define GEN_PASS_DECL
#include "passes/redistribute/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/redistribute/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_PASSES_H
