// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/EraseUnused.h"
#include "dialects/aten/RowOrders.h"
#include "dialects/aten/passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENUNDOROWORDERS
#include "dialects/aten/passes/Passes.h.inc"

namespace {

struct UndoRowOrders : impl::AtenUndoRowOrdersBase<UndoRowOrders> {
  void runOnOperation() override {
    if (unsigned undone = undoRowOrders(getOperation())) {
      numOrders += undone;
      eraseUnused(getOperation());
    }
  }
};

} // namespace
} // namespace shardc::aten
