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
  std::string memoryLimit; ///< bytes; empty: as OptimizeOptions say
  /// What symbols are taken to be ("batch=8"); others: what the module notes, else typical values.
  llvm::ArrayRef<std::string> sizes = {};
};

struct OptimizeMode {
  PlanForm form;
  /// Also a remark at each bucket and at each collective left alone.
  bool remarks;
  /// Where no order meets the memory limit: keep the program's order.
  bool bestEffort;
};

/// Optimises every function of the module, notes what was decided (DecisionAttributes.h) and passes
/// it to `visit`. `options` are completed by what `text` says. Fails, with an error at the module,
/// where that makes no sense, and where functions are clones made for some ranks: each would get an
/// order of its own.
mlir::LogicalResult optimizeModule(
    mlir::ModuleOp module, const OptimizeText &text, collectives::OptimizeOptions options,
    const OptimizeMode &mode,
    llvm::function_ref<void(mlir::func::FuncOp, const collectives::OptimizeResult &)> visit);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_OPTIMIZEFUNCTION_H
