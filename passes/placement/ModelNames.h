// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of a model that a plan may use, read off a function of the imported stage.
#ifndef SHARDC_PASSES_PLACEMENT_MODELNAMES_H
#define SHARDC_PASSES_PLACEMENT_MODELNAMES_H

#include "importers/plan/Resolve.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Names and shapes, and beside each the IR that it stands for.
struct ModelIndex {
  plan::ModelNames names;
  std::vector<unsigned> parameterArguments, inputArguments; ///< argument numbers
  std::vector<unsigned> outputResults;                      ///< result numbers
  struct Boundary {
    std::vector<mlir::Value> inputs, outputs;  ///< as in plan::ModuleBoundary
    std::vector<mlir::Operation *> operations; ///< those inside the module, children included
  };
  std::vector<Boundary> modules;
};

/// Linear in the ops times the depth of the module tree.
ModelIndex indexModel(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_MODELNAMES_H
