// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Inference.h"
#include "dialects/aten/passes/Passes.h"

using namespace mlir;

namespace shardc::aten {

#define GEN_PASS_DEF_ATENREFINETYPES
#include "dialects/aten/passes/Passes.h.inc"

namespace {

struct RefineTypes : impl::AtenRefineTypesBase<RefineTypes> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    bool ok = true;
    function.walk([&](Operation *op) {
      SmallVector<Type> before(op->getResultTypes());
      ok &= succeeded(inferAndSetTypes(op));
      for (auto [type, result] : llvm::zip(before, op->getResults()))
        refined += type != result.getType();
    });
    if (!ok)
      return signalPassFailure();

    // What returns agree on before, they may know differently now; the signature takes one return.
    auto returns = llvm::to_vector(function.getOps<func::ReturnOp>());
    if (returns.size() == 1)
      function.setFunctionType(FunctionType::get(&getContext(), function.getArgumentTypes(),
                                                 returns.front()->getOperandTypes()));
  }
};

} // namespace
} // namespace shardc::aten
