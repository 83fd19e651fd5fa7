// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recomputation under a memory limit, judged by planned memory: the one pass that has to know what
// the passes behind it make of its choice, and so is part of the pipeline.

#ifndef SHARDC_PIPELINE_FITMEMORY_H
#define SHARDC_PIPELINE_FITMEMORY_H

#include "passes/recompute/Passes.h"

#include <functional>
#include <optional>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace shardc {

/// Adds the passes from the local to the scheduled stage, with a memory limit for the scheduler;
/// without one the program's order is kept. With `bestEffort` it is kept too where no other meets
/// the limit.
using AddSchedule =
    std::function<void(mlir::OpPassManager &, std::optional<uint64_t> limit, bool bestEffort)>;
/// Adds the passes from the scheduled to the planned stage.
using AddPlan = std::function<void(mlir::OpPassManager &)>;

/// local -> scheduled: runs `dist-recompute` and the scheduler so that the entries with a backward
/// take at most `limit` bytes on every rank once memory is planned. Both go by an estimate; this
/// pass finds the limit that they are given for it: it plans copies of the module, compares their
/// arenas, parameters, inputs and outputs with the limit, and moves the estimate's limit by the
/// difference, a few times. Where no choice fits, it fails, or with `bestEffort` makes the one that
/// takes least, and says so at the module for `exec-check-memory`. The function attribute
/// dist.recomputed gets the planned bytes too.
std::unique_ptr<mlir::Pass> createFitMemory(uint64_t limit, bool bestEffort,
                                            const RecomputeOptions &options, AddSchedule schedule,
                                            AddPlan plan);

} // namespace shardc

#endif // SHARDC_PIPELINE_FITMEMORY_H
