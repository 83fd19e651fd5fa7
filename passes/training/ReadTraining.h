// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes of training are told: the section `train:` of a plan.
#ifndef SHARDC_PASSES_TRAINING_READTRAINING_H
#define SHARDC_PASSES_TRAINING_READTRAINING_H

#include "dialects/dist/Dist.h"
#include "importers/plan/Training.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace shardc::training {

/// Reads `text`, or what the module says if that is empty. Fails after an error for each mistake.
llvm::LogicalResult readTraining(mlir::ModuleOp module, std::string text, plan::Training &training);

/// Fails after an error unless there is a mesh and each tensor argument has a layout.
llvm::LogicalResult checkPlaced(mlir::func::FuncOp function, dist::MeshAttr mesh);

/// The kind of an argument; empty where it has none.
llvm::StringRef kindOf(mlir::FunctionOpInterface function, unsigned argument);

/// Whether one of the argument's names matches one of the patterns.
bool matches(mlir::FunctionOpInterface function, unsigned argument,
             llvm::ArrayRef<std::string> patterns);

/// "; did you mean x?" of a pattern that matches none of the names; empty where none is near.
std::string didYouMean(llvm::StringRef pattern, const std::vector<std::string> &names);

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_READTRAINING_H
