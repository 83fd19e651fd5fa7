// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step of a program will cost on each rank, by a cost model.
#ifndef SHARDC_PASSES_REPORT_ENTRYPREDICTION_H
#define SHARDC_PASSES_REPORT_ENTRYPREDICTION_H

#include "passes/cost/core/CostModel.h"
#include "passes/report/ModuleReport.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>
#include <vector>

namespace shardc {

/// Times in microseconds. Each op is a kernel of its own, or free where it is a view, a constant or
/// index arithmetic: kernels that the lowering fuses are cheaper than that.
struct RankPrediction {
  int64_t rank = 0;
  double stepUs = 0;
  double exposedUs = 0; ///< of the step, spent waiting for collectives
  /// Parameters, inputs, outputs and what is live between, at most at one time.
  uint64_t peakBytes = 0;
};

struct EntryPrediction {
  std::string topology;
  ModuleTable modules;               ///< of the slowest rank, without collectives
  std::vector<RankPrediction> ranks; ///< by position in the mesh
  const RankPrediction &slowest() const;
  uint64_t peakBytes() const;
};

/// Time of one collective, and what of it the slowest rank waits for.
struct CollectivePrediction {
  double us = 0, exposedUs = 0;
};

/// Predicts the entry whose variants are `functions` (specialised, all shapes static); device d
/// runs variant `variantOfDevice[d]` and has the rank `rankOfDevice[d]`. Ranks of one variant are
/// taken to be alike, and to start every collective together. `collectives` gets one entry for
/// each, in program order.
mlir::FailureOr<EntryPrediction> predictEntry(llvm::ArrayRef<mlir::func::FuncOp> functions,
                                              llvm::ArrayRef<int64_t> variantOfDevice,
                                              llvm::ArrayRef<int64_t> rankOfDevice,
                                              const cost::CostModel &model,
                                              std::vector<CollectivePrediction> &collectives);

} // namespace shardc

#endif // SHARDC_PASSES_REPORT_ENTRYPREDICTION_H
