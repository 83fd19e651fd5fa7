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

/// What such a text says.
struct OptimizeInput {
  collectives::OptimizeOptions options;
  std::unique_ptr<cost::CostModel> model = nullptr;
  SymbolValues sizes = {};
};

/// `options`, completed by what `text` says; fails, with errors at the module, where they make no
/// sense.
mlir::FailureOr<OptimizeInput> readOptimizeText(mlir::ModuleOp module, const OptimizeText &text,
                                                collectives::OptimizeOptions options);

/// Without a memory limit, how many of the largest collectives the scheduled program may hold
/// beside what it takes. What is gathered right before its use leaves no room to gather the next
/// beside it; with two, a stream that is behind can catch up.
inline constexpr unsigned kCollectivesAhead = 2;

/// How a move that is judged by the schedule which follows it asks for that schedule.
inline collectives::OptimizeOptions moveOptions(bool bucket, collectives::SchedulingPolicy policy,
                                                double robust, bool flat, bool mixedDtype) {
  collectives::OptimizeOptions options;
  options.bucket = bucket;
  options.policy = policy;
  options.robust = robust;
  options.flat = flat;
  options.ahead = kCollectivesAhead;
  options.buckets.mixedDtype = mixedDtype;
  return options;
}

/// What the options of such a move say: where it is made, and how it is judged.
template <typename Mode> struct Move {
  Mode mode;
  OptimizeInput input;
};
/// Fails, with errors at the module, where option `name` or the others make no sense. `parse` is
/// given the option's text and a place for an error.
template <typename Mode>
mlir::FailureOr<Move<Mode>>
readMove(mlir::ModuleOp module, llvm::StringRef name, const std::string &mode,
         std::optional<Mode> (*parse)(std::string_view, std::string &), const OptimizeText &text,
         collectives::OptimizeOptions options) {
  std::string error;
  std::optional<Mode> parsed = parse(mode, error);
  if (!parsed)
    return module.emitError() << name << ": " << error;
  mlir::FailureOr<OptimizeInput> input = readOptimizeText(module, text, options);
  if (failed(input))
    return mlir::failure();
  return Move<Mode>{std::move(*parsed), std::move(*input)};
}

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
