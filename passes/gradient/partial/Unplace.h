// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Takes layouts off a part of a placed function, so that it can be placed again.
#ifndef SHARDC_PASSES_GRADIENT_PARTIAL_UNPLACE_H
#define SHARDC_PASSES_GRADIENT_PARTIAL_UNPLACE_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Takes the layouts off what is computed from `changed`. Stops at `backward` redistributions,
/// whose results keep their layouts, and at results of the function, which are redistributed to the
/// layouts that they had. What was sharded is to be sharded so again if that is cheap.
/// Redistributions that are there for the ops without layouts alone are taken out.
void unplaceFollowers(mlir::func::FuncOp function, llvm::ArrayRef<dist::RedistributeOp> changed);

/// Takes out redistributions of a placed function that change nothing, or that nothing uses.
void eraseIdleRedistributions(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_PARTIAL_UNPLACE_H
