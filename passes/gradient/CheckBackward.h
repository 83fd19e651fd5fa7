// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a function must not do if it is to have a backward, and what is likely not meant.
#ifndef SHARDC_PASSES_GRADIENT_CHECKBACKWARD_H
#define SHARDC_PASSES_GRADIENT_CHECKBACKWARD_H

#include "passes/gradient/Backward.h"

namespace shardc {

/// Whether a result is the new value of an argument, which is written back whoever asks for
/// gradients.
bool isMutation(mlir::func::FuncOp function, unsigned result);

/// Errors for ops that have no derivative, and for values that are written back or past autograd
/// where the loss depends on them.
llvm::LogicalResult checkBackward(mlir::func::FuncOp function, Backward &backward,
                                  llvm::ArrayRef<unsigned> wrt);

/// An alias in a graph that PyTorch decomposed may have been a detach: nothing in the graph says
/// so.
void warnOfAliases(mlir::func::FuncOp function, const Backward &backward);

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_CHECKBACKWARD_H
