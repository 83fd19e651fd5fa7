// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/target/Backend.h"
#include "lowering/target/Passes.h"

#include "mlir/Dialect/DLTI/DLTI.h"

namespace shardc::target {
#define GEN_PASS_DEF_SETTARGET
#include "lowering/target/Passes.h.inc"
} // namespace shardc::target

using namespace mlir;
using namespace shardc;

namespace {

struct SetTarget : target::impl::SetTargetBase<SetTarget> {
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    llvm::Expected<target::Target> resolved = target::resolveTarget(spec);
    if (!resolved) {
      getOperation().emitError() << llvm::toString(resolved.takeError());
      return signalPassFailure();
    }
    setTarget(getOperation(), *resolved);
    numLimits += std::size(target::kLimits);
  }
};

} // namespace
