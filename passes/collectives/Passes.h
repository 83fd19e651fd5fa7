// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_PASSES_H
#define SHARDC_PASSES_COLLECTIVES_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"
#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/TargetDescription.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/collectives/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/collectives/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_PASSES_H
