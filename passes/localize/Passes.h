// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// placed -> local; see Passes.td.
#ifndef SHARDC_PASSES_LOCALIZE_PASSES_H
#define SHARDC_PASSES_LOCALIZE_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/localize/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/localize/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_PASSES_H
