// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the artifact says about the program, noted in the IR while it is known.

#ifndef SHARDC_LOWERING_ARTIFACT_PASSES_H
#define SHARDC_LOWERING_ARTIFACT_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::artifact {

#define GEN_PASS_DECL
#include "lowering/artifact/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/artifact/Passes.h.inc"

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_PASSES_H
