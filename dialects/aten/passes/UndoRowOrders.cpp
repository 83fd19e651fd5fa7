// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/RowOrders.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENUNDOROWORDERS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

struct UndoRowOrders : impl::AtenUndoRowOrdersBase<UndoRowOrders> {
  void runOnOperation() override {
    unsigned undone = undoRowOrders(getOperation());
    numOrders += undone;
    if (undone == 0)
      return;
    // Users come after what they use.
    for (Block &block : getOperation().getBody())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isOpTriviallyDead(&op))
          op.erase();
  }
};

} // namespace
} // namespace shardc::aten
