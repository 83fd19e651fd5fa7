// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_ERASEUNUSED_H
#define SHARDC_DIALECTS_ATEN_ERASEUNUSED_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace shardc::aten {

/// Erases the ops of a function that have no effect and that nothing uses, and what only they used.
inline void eraseUnused(mlir::func::FuncOp function) {
  // Users come after what they use.
  for (mlir::Block &block : function.getBody())
    for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (mlir::isOpTriviallyDead(&op))
        op.erase();
}

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_ERASEUNUSED_H
