// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/Backend.h"
#include "lowering/target/Passes.h"

#include "mlir/Pass/PassManager.h"

namespace shardc::target {
#define GEN_PASS_DEF_LOWERTOTARGET
#include "lowering/target/Passes.h.inc"
} // namespace shardc::target

using namespace mlir;
using namespace shardc;

namespace {

struct LowerToTarget : target::impl::LowerToTargetBase<LowerToTarget> {
  using LowerToTargetBase::LowerToTargetBase;

  /// The target is known once the module is.
  void getDependentDialects(DialectRegistry &dialects) const override {
    for (const target::Backend *backend : target::registeredBackends()) {
      OpPassManager tail(ModuleOp::getOperationName());
      backend->buildKernelTail(tail);
      tail.getDependentDialects(dialects);
      backend->registerDialects(dialects);
    }
  }

  void runOnOperation() override {
    auto found = target::backendOf(getOperation());
    if (failed(found))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      numKernels += function->hasAttr(exec::kKernelAttr);
    OpPassManager tail(ModuleOp::getOperationName());
    found->first->buildKernelTail(tail);
    if (failed(runPipeline(tail, getOperation())))
      signalPassFailure();
  }
};

} // namespace
