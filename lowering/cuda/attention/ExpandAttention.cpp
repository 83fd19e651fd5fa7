// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cuda/attention/AttentionKernels.h"
#include "lowering/cuda/attention/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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

/// Of the forward, and of the backward.
constexpr AttentionKernelKind kKinds[] = {AttentionKernelKind::Forward,
                                          AttentionKernelKind::QueryGradient,
                                          AttentionKernelKind::KeyGradient};

struct CudaExpandAttention : cuda::impl::CudaExpandAttentionBase<CudaExpandAttention> {
  using cuda::impl::CudaExpandAttentionBase<CudaExpandAttention>::CudaExpandAttentionBase;

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
    host::SharedKernels shared(getOperation());
    for (Operation *op : ops) {
      if (auto forward = dyn_cast<exec::AttentionOp>(op))
        expand(forward, buildDeviceAttention, shared);
      else
        expand(cast<exec::AttentionBackwardOp>(op), buildDeviceAttentionBackward, shared);
    }
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
    AttentionProblem problem;
    Type element = op.getQuery().getType().getElementType();
    problem.elementBytes = element.getIntOrFloatBitWidth() / 8;
    problem.depth = depth;
    problem.width = width;
    ArrayRef<AttentionKernelKind> all(kKinds);
    for (AttentionKernelKind kind :
         isa<exec::AttentionOp>(op) ? all.take_front() : all.drop_front())
      for (int64_t rows : {int64_t(-1), kAttentionFewRows}) {
        problem.kind = kind;
        problem.rows = rows;
        if (!planAttention(problem))
          return op.emitOpError("has heads of sizes ")
                 << depth << " and " << width << " of " << element
                 << ", whose smallest tiles need more shared memory or registers than a block of "
                    "CUDA threads has";
      }
    return success();
  }

  template <typename OpT, typename Build>
  void expand(OpT op, Build build, host::SharedKernels &shared) {
    DeviceAttention options{host::AttentionOptions::of(op)};
    options.multiprocessors = multiprocessors;
    kernels += shared.replace(op, [&](ArrayRef<Type> types) {
      func::FuncOp kernel = build(op.getLoc(), types, options);
      int64_t launches = 0;
      kernel.walk([&](gpu::LaunchOp) { ++launches; });
      divided += isa<exec::AttentionOp>(op) && launches > 1;
      return kernel;
    });
    ++expanded;
  }
};

} // namespace
