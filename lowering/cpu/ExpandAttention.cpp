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
    SymbolTable symbols(getOperation());
    // Attention in all layers is one kernel.
    DenseMap<Attribute, func::FuncOp> known;
    auto expand = [&](auto op, bool hasLogsumexp, auto build) {
      OpBuilder b(op);
      SmallVector<Type> types;
      for (Value argument : op->getOperands())
        types.push_back(exec::kernelArgumentType(cast<MemRefType>(argument.getType())));
      AttentionOptions options;
      options.scale = op.getScale().convertToDouble();
      options.isCausal = op.getCausal();
      options.hasMask = op.getMask() != nullptr;
      options.hasLogsumexp = hasLogsumexp;
      func::FuncOp &kernel = known[b.getArrayAttr(
          {b.getStringAttr(op->getName().getStringRef()), b.getTypeArrayAttr(types),
           op.getScaleAttr(), b.getBoolAttr(options.isCausal), b.getBoolAttr(options.hasMask)})];
      if (!kernel) {
        kernel = build(op.getLoc(), types, options, *limits);
        symbols.insert(kernel);
        ++kernels;
      }
      exec::LaunchOp::create(b, op.getLoc(), kernel.getName(), op->getOperands(), op.getNameAttr());
      op.erase();
      ++expanded;
    };
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<exec::AttentionOp, exec::AttentionBackwardOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (auto forward = dyn_cast<exec::AttentionOp>(op))
        expand(forward, forward.getLogsumexp() != nullptr, buildAttentionKernel);
      else
        expand(cast<exec::AttentionBackwardOp>(op), true, buildAttentionBackwardKernel);
    }
  }
};

} // namespace
