// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cpu/AttentionKernel.h"
#include "lowering/cpu/Passes.h"
#include "lowering/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUEXPANDATTENTION
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;
using namespace shardc::cpu;

namespace {

struct ExpandAttention : cpu::impl::CpuExpandAttentionBase<ExpandAttention> {
  void runOnOperation() override {
    FailureOr<target::Limits> limits = target::readLimits(getOperation());
    if (failed(limits))
      return signalPassFailure();
    host::SharedKernels shared(getOperation());
    auto expand = [&](auto op, auto build) {
      auto options = AttentionOptions::of(op);
      kernels += shared.replace(
          op, [&](ArrayRef<Type> types) { return build(op.getLoc(), types, options, *limits); });
      ++expanded;
    };
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<exec::AttentionOp, exec::AttentionBackwardOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto forward = dyn_cast<exec::AttentionOp>(op))
        expand(forward, buildAttentionKernel);
      else
        expand(cast<exec::AttentionBackwardOp>(op), buildAttentionBackwardKernel);
    }
  }
};

} // namespace
