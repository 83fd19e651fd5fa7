// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/AttentionKernel.h"
#include "lowering/cpu/Passes.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

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
    SymbolTable symbols(getOperation());
    SmallVector<exec::AttentionOp> ops;
    for (auto entry : getOperation().getOps<func::FuncOp>())
      if (entry->hasAttr(exec::kEntryAttr))
        llvm::append_range(ops, entry.getOps<exec::AttentionOp>());
    for (exec::AttentionOp op : ops)
      expand(op, symbols);
  }

  void expand(exec::AttentionOp op, SymbolTable &symbols) {
    SmallVector<Type> types;
    for (Value operand : op->getOperands())
      types.push_back(exec::kernelArgumentType(cast<MemRefType>(operand.getType())));
    OpBuilder b(op);
    // The layers of a model share their kernel.
    Key key{b.getFunctionType(types, {}).getAsOpaquePointer(), op.getCausal(),
            op.getScaleAttr().getAsOpaquePointer(), op.getMask() != nullptr};
    func::FuncOp &kernel = kernelOf[key];
    if (!kernel) {
      AttentionOptions options;
      options.scale = op.getScale().convertToDouble();
      options.isCausal = op.getCausal();
      options.hasMask = op.getMask() != nullptr;
      kernel = buildAttentionKernel(op.getLoc(), types, options);
      symbols.insert(kernel);
      ++kernels;
    }
    exec::LaunchOp::create(b, op.getLoc(), kernel.getName(), op->getOperands(), op.getNameAttr());
    op.erase();
    ++expanded;
  }

  struct Key {
    const void *types;
    bool isCausal;
    const void *scale;
    bool hasMask;
    auto operator<=>(const Key &) const = default;
  };
  std::map<Key, func::FuncOp> kernelOf;
};

} // namespace
