// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_VERIFY_PASSES_H
#define SHARDC_PASSES_VERIFY_PASSES_H

#include "passes/verify/Stage.h"

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Pass/Pass.h"

namespace shardc {

#define GEN_PASS_DECL
#include "passes/verify/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/verify/Passes.h.inc"

/// The stage that a pass checks, if it is `dist-verify-stage`: every pipeline has one at each
/// boundary between stages.
std::optional<Stage> stageCheckedBy(const mlir::Pass &pass);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_PASSES_H
