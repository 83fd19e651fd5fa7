// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that write and read the target of a module.

#ifndef SHARDC_LOWERING_TARGET_PASSES_H
#define SHARDC_LOWERING_TARGET_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Pass/Pass.h"

namespace shardc::target {

#define GEN_PASS_DECL
#include "lowering/target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/target/Passes.h.inc"

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_PASSES_H
