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
    DenseMap<Attribute, func::FuncOp> known;
    SmallVector<exec::AttentionOp> ops;
    getOperation().walk([&](exec::AttentionOp op) { ops.push_back(op); });
    for (exec::AttentionOp op : ops) {
      OpBuilder b(op);
      SmallVector<Value> arguments{op.getQuery(), op.getKey(), op.getValue()};
      if (op.getMask())
        arguments.push_back(op.getMask());
      arguments.push_back(op.getOut());
      SmallVector<Type> types;
      for (Value argument : arguments)
        types.push_back(exec::kernelArgumentType(cast<MemRefType>(argument.getType())));
      // Attention in all layers is one kernel.
      Attribute key = b.getArrayAttr(
          {b.getTypeArrayAttr(types), op.getScaleAttr(), b.getBoolAttr(op.getCausal())});
      func::FuncOp &kernel = known[key];
      if (!kernel) {
        AttentionOptions options;
        options.scale = op.getScale().convertToDouble();
        options.isCausal = op.getCausal();
        options.hasMask = op.getMask() != nullptr;
        kernel = buildAttentionKernel(op.getLoc(), types, options, *limits);
        symbols.insert(kernel);
        ++kernels;
      }
      exec::LaunchOp::create(b, op.getLoc(), kernel.getName(), arguments, op.getNameAttr());
      op.erase();
      ++expanded;
    }
  }
};

} // namespace
