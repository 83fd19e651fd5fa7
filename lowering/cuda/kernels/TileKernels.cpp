// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fused kernels: from linalg on tensors to launches on the device.

#include "dialects/exec/Exec.h"
#include "lowering/cuda/kernels/KernelKind.h"
#include "lowering/cuda/kernels/Passes.h"
#include "lowering/cuda/kernels/RangeChecks.h"
#include "lowering/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDATILEKERNELS
#include "lowering/cuda/kernels/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;
using namespace shardc::cuda;

namespace {

/// Whether there is nothing to compute: the result has no elements.
bool isEmpty(const KernelStage &stage) {
  return llvm::all_of(stage.stored, [](OpResult result) {
    return llvm::is_contained(cast<RankedTensorType>(result.getType()).getShape(), 0);
  });
}

struct TileCudaKernels : cuda::impl::CudaTileKernelsBase<TileCudaKernels> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr) || kernel.isDeclaration() ||
        (kernel.getOps<bufferization::MaterializeInDestinationOp>().empty() &&
         kernel.getOps<exec::CheckRangeOp>().empty()))
      return;
    FailureOr<target::Limits> limits = target::readLimits(kernel);
    if (failed(limits))
      return signalPassFailure();
    FailureOr<FusedKernel> fused = FusedKernel::analyze(kernel, *limits);
    if (failed(fused))
      return signalPassFailure();
    OpBuilder host(kernel.getBody().front().getTerminator());
    if (failed(emitRangeChecks(*fused, host)))
      return signalPassFailure();
    SmallVector<linalg::LinalgOp> ops(fused->getOps());
    for (ArrayRef<linalg::LinalgOp> rest = ops; !rest.empty();) {
      const KernelKind *best = nullptr;
      size_t count = 0;
      for (const std::unique_ptr<KernelKind> &kind : kernelKinds()) {
        size_t taken = kind->match(*fused, rest);
        if (taken > count) {
          best = kind.get();
          count = taken;
        }
      }
      KernelStage stage = makeStage(*fused, rest, count);
      for (OpResult result : stage.stored)
        fused->makePlace(host, result);
      if (!isEmpty(stage)) {
        if (failed(best->emit(stage, host)))
          return signalPassFailure();
        ++stages;
      }
      rest = rest.drop_front(count);
    }
    if (failed(fused->eraseTensors()))
      return signalPassFailure();
    ++tiledKernels;
    temporaries += fused->temporaryCount();
  }
};

} // namespace
