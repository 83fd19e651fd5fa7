// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which outputs are differentiated with respect to which arguments: names and numbers looked up in
// a function.
#ifndef SHARDC_PASSES_GRADIENT_SELECTION_H
#define SHARDC_PASSES_GRADIENT_SELECTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace shardc {

/// As it is asked for: names or numbers of outputs, and names of arguments with wildcards.
struct Selection {
  llvm::SmallVector<std::string> losses, cotangents, wrt;
};

/// Numbers of results and arguments, without repetition.
struct Selected {
  llvm::SmallVector<unsigned> losses, cotangents, wrt;
};

/// Fails after an error for each name that does not exist, and for whatever cannot be
/// differentiated; `selected` then has the others.
llvm::LogicalResult select(mlir::func::FuncOp function, const Selection &selection,
                           Selected &selected);

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_SELECTION_H
