// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the bucketing and the scheduling pass share: a function to a graph, the optimiser's core,
// the plan back into the function, and what there is to report about it.

#ifndef SHARDC_PASSES_COLLECTIVES_OPTIMIZEFUNCTION_H
#define SHARDC_PASSES_COLLECTIVES_OPTIMIZEFUNCTION_H

#include "passes/collectives/analysis/ProgramGraph.h"
#include "passes/collectives/core/Optimize.h"

namespace shardc {

/// Options as text, as passes have them.
struct OptimizeText {
  std::string topology, caps;
  uint64_t memoryLimit = 0; ///< 0: as OptimizeOptions say
};

/// A cost model and parsed options; fails, with an error at the module, where they make no sense.
mlir::LogicalResult readOptions(mlir::ModuleOp module, const OptimizeText &text,
                                collectives::OptimizeOptions &options,
                                std::unique_ptr<cost::CostModel> &model);

struct OptimizeMode {
  PlanForm form;
  /// Also a remark at each bucket and at each collective left alone.
  bool remarks;
  /// Where no order meets the memory limit: keep the program's order.
  bool bestEffort;
};

/// Optimises one function and notes what was decided (DecisionAttributes.h).
mlir::FailureOr<collectives::OptimizeResult>
optimizeFunction(mlir::func::FuncOp function, const cost::CostModel &model,
                 const collectives::OptimizeOptions &options, const OptimizeMode &mode);

/// Fails where the module's functions are clones made for some ranks: each would get an order of
/// its own.
mlir::LogicalResult checkUnspecialized(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_OPTIMIZEFUNCTION_H
