// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_SPECIALIZE_PASSES_H
#define SHARDC_PASSES_SPECIALIZE_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/specialize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/specialize/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_PASSES_H
