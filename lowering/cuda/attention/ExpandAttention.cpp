// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/attention/AttentionKernels.h"
#include "lowering/cuda/attention/Passes.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAEXPANDATTENTION
#include "lowering/cuda/attention/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

namespace {

struct CudaExpandAttention : cuda::impl::CudaExpandAttentionBase<CudaExpandAttention> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    bool supported = true;
    getOperation().walk([&](Operation *op) {
      if (auto forward = dyn_cast<exec::AttentionOp>(op))
        supported &= succeeded(check(forward));
      else if (auto backward = dyn_cast<exec::AttentionBackwardOp>(op))
        supported &= succeeded(check(backward));
      else
        return;
      ops.push_back(op);
    });
    if (!supported)
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (Operation *op : ops) {
      if (auto forward = dyn_cast<exec::AttentionOp>(op))
        expand(forward, forward.getLogsumexp() != nullptr, buildDeviceAttention, symbols);
      else
        expand(cast<exec::AttentionBackwardOp>(op), true, buildDeviceAttentionBackward, symbols);
    }
    known.clear();
  }

  /// The sizes of a head, which tiles in shared memory are made for.
  template <typename OpT> static LogicalResult check(OpT op) {
    int64_t depth = op.getQuery().getType().getDimSize(3);
    int64_t width = op.getValue().getType().getDimSize(3);
    for (auto [size, what] : {std::pair(depth, "queries and keys"), std::pair(width, "values")}) {
      if (ShapedType::isDynamic(size))
        return op.emitOpError("has heads of ")
               << what << " whose size is only known when it runs, which CUDA kernels do not take";
      if (size > kAttentionMostDepth)
        return op.emitOpError("has heads of ")
               << what << " of size " << size << "; CUDA kernels take sizes up to "
               << kAttentionMostDepth;
    }
    return success();
  }

  template <typename OpT, typename Build>
  void expand(OpT op, bool hasLogsumexp, Build build, SymbolTable &symbols) {
    OpBuilder b(op);
    SmallVector<Type> types;
    for (Value argument : op->getOperands())
      types.push_back(exec::kernelArgumentType(cast<MemRefType>(argument.getType())));
    DeviceAttention options;
    options.scale = op.getScale().convertToDouble();
    options.isCausal = op.getCausal();
    options.hasMask = op.getMask() != nullptr;
    options.hasLogsumexp = hasLogsumexp;
    func::FuncOp &kernel = known[b.getArrayAttr(
        {b.getStringAttr(op->getName().getStringRef()), b.getTypeArrayAttr(types),
         op.getScaleAttr(), b.getBoolAttr(options.isCausal), b.getBoolAttr(options.hasMask),
         b.getBoolAttr(hasLogsumexp)})];
    if (!kernel) {
      kernel = build(op.getLoc(), types, options);
      symbols.insert(kernel);
      ++kernels;
    }
    exec::LaunchOp::create(b, op.getLoc(), kernel.getName(), op->getOperands(), op.getNameAttr());
    op.erase();
    ++expanded;
  }

  /// Attention in all layers is one kernel.
  DenseMap<Attribute, func::FuncOp> known;
};

} // namespace
