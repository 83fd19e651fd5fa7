// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of the local stage as the plain program that the choice is made for, and the choice
// back into the function.

#ifndef SHARDC_PASSES_RECOMPUTE_FUNCTIONPROGRAM_H
#define SHARDC_PASSES_RECOMPUTE_FUNCTIONPROGRAM_H

#include "passes/cost/core/CostModel.h"
#include "passes/recompute/Passes.h"
#include "passes/recompute/core/Recompute.h"
#include "passes/specialize/BindSymbols.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

struct RecomputeChoices {
  /// Patterns of module paths.
  llvm::ArrayRef<std::string> modules;
  ReshardAfterForward reshard = ReshardAfterForward::Auto;
};

struct FunctionProgram {
  recompute::Program program;
  /// By recompute::OpId: all ops of the function but its return.
  std::vector<mlir::Operation *> ops;
  /// By region: the path of the module.
  std::vector<std::string> regions;
};

/// The position of the first op of the backward among the ops of the function; nothing where it has
/// none.
std::optional<size_t> findBackward(mlir::func::FuncOp function);

/// Whether the op is the all-gather of a parameter, or of a view or cast of one.
bool isWeightGather(mlir::Operation *op);

/// Fails, after errors, where the costs of an op are not known.
mlir::FailureOr<FunctionProgram> readFunction(mlir::func::FuncOp function, size_t backward,
                                              const cost::CostModel &model,
                                              const SymbolValues &sizes,
                                              const RecomputeChoices &choices);

/// Clones what is computed again, each clone before the op that it is for, and lets the backward
/// read the clones. Clones read through dist.after what the forward has made, so that no pass
/// computes them earlier; gathers of weights alone do not, because they may be started as early as
/// memory allows.
void applyChoices(const FunctionProgram &program, const recompute::Result &result);

} // namespace shardc

#endif // SHARDC_PASSES_RECOMPUTE_FUNCTIONPROGRAM_H
