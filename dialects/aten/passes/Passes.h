// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that know nothing but the aten dialect (see Passes.td).
#ifndef SHARDC_DIALECTS_ATEN_PASSES_PASSES_H
#define SHARDC_DIALECTS_ATEN_PASSES_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::aten {

#define GEN_PASS_DECL
#include "dialects/aten/passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dialects/aten/passes/Passes.h.inc"

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_PASSES_PASSES_H
