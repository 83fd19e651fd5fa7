// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of the pipeline that run more than once: on the module, and on copies of it whose memory is
// planned in order to choose.

#ifndef SHARDC_PIPELINE_STEPS_H
#define SHARDC_PIPELINE_STEPS_H

#include "passes/recompute/Passes.h"
#include "pipeline/Options.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace shardc {

/// What `dist-recompute` is told, without a memory limit.
RecomputeOptions recomputeOptions(const PipelineOptions &options);

/// What the scheduler may do.
struct ScheduleLimits {
  /// The memory limit, as text; empty: none.
  std::string memoryLimit;
  /// Without it the order of the program is kept.
  bool mayMove = true;
  /// The order is kept too where no other meets the limit.
  bool bestEffort = false;
};

/// Orders and merges collectives: from the local to the scheduled stage.
void addSchedule(mlir::OpPassManager &pm, const PipelineOptions &options,
                 const ScheduleLimits &limits);
/// From the scheduled to the specialized stage.
void addSpecialize(mlir::OpPassManager &pm, const PipelineOptions &options);
/// From the specialized to the planned stage.
void addPlanMemory(mlir::OpPassManager &pm, const PipelineOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINE_STEPS_H
