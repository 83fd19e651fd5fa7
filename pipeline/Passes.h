// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that know the pipeline they are part of; see Passes.td.

#ifndef SHARDC_PIPELINE_PASSES_H
#define SHARDC_PIPELINE_PASSES_H

#include "dialects/interfaces/PassStatistic.h"
#include "passes/gradient/partial/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "pipeline/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "pipeline/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_PIPELINE_PASSES_H
