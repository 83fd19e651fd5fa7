// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/placement/Passes.h"

#include "dialects/dist/Dist.h"

namespace shardc {
#define GEN_PASS_DEF_WARNUNSHARDED
#include "passes/placement/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {
struct WarnUnsharded : shardc::impl::WarnUnshardedBase<WarnUnsharded> {
  void runOnOperation() override {
    bool replicated = false, other = false;
    auto look = [&](Type type) {
      if (dist::LayoutAttr layout = dist::getLayout(type))
        if (layout.getValue().mesh.numDevices() > 1)
          (layout.getValue().isFullyReplicated() ? replicated : other) = true;
    };
    getOperation().walk([&](Operation *op) {
      llvm::for_each(op->getOperandTypes(), look);
      llvm::for_each(op->getResultTypes(), look);
      return other ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (replicated && !other) {
      ++numUnsharded;
      mlir::emitWarning(getOperation().getLoc())
          << "nothing is sharded: every rank computes the whole model; say with --plan or --place "
             "what is, e.g. --place 'module:*.q_proj=colwise'";
    }
    markAllAnalysesPreserved();
  }
};
} // namespace
