// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_ERASEDEAD_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_ERASEDEAD_H

#include "passes/specialize/RankValues.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {

/// Erases ops that nothing uses any more, in this order, and what only they used. Each is forgotten
/// by `ranks` and told to `erased` before.
inline void eraseDead(llvm::ArrayRef<mlir::Operation *> ops, RankValues &ranks,
                      llvm::function_ref<void(mlir::Operation *)> erased) {
  llvm::SmallVector<mlir::Operation *> stack(llvm::reverse(ops));
  while (!stack.empty()) {
    mlir::Operation *op = stack.pop_back_val();
    llvm::SmallSetVector<mlir::Value, 4> operands(op->operand_begin(), op->operand_end());
    erased(op);
    ranks.forget(op);
    op->erase();
    for (mlir::Value operand : operands) {
      mlir::Operation *maker = operand.getDefiningOp();
      if (maker && mlir::isOpTriviallyDead(maker) && !llvm::is_contained(stack, maker))
        stack.push_back(maker);
    }
  }
}

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_ERASEDEAD_H
