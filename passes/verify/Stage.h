// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms of a program (see Passes.td for what each promises).

#ifndef SHARDC_PASSES_VERIFY_STAGE_H
#define SHARDC_PASSES_VERIFY_STAGE_H

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

enum class Stage { Imported, HalfPlaced, Placed, Local, Scheduled, Specialized, Planned, Lowered };

llvm::StringRef stringifyStage(Stage stage);

struct StageStatistics {
  int64_t ops = 0;      ///< operations looked at
  int64_t rules = 0;    ///< distinct combinations of sharding rule and layouts
  int64_t unproven = 0; ///< planned: views whose sizes are not known, and pairs of them
};

/// Emits every violation of a stage's form as an error. Linear in the number of ops.
llvm::LogicalResult verifyStage(mlir::ModuleOp module, Stage stage,
                                StageStatistics *statistics = nullptr);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_STAGE_H
