// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shardc::cuda {
#define GEN_PASS_DEF_CUDAEXPANDDEVICEOPS
#include "lowering/cuda/backend/Passes.h.inc"
} // namespace shardc::cuda

using namespace mlir;
using namespace shardc;

namespace {

constexpr unsigned kLanes = 32, kShuffleBits = 32;

struct ExpandDeviceOps : cuda::impl::CudaExpandDeviceOpsBase<ExpandDeviceOps> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateGpuRewritePatterns(patterns);
    populateGpuSubgroupIdPatterns(patterns);
    populateGpuBreakDownSubgroupReducePatterns(patterns, kShuffleBits, PatternBenefit(2));
    populateGpuLowerSubgroupReduceToShufflePatterns(patterns, kLanes, kShuffleBits);
    populateGpuLowerClusteredSubgroupReduceToShufflePatterns(patterns, kLanes, kShuffleBits);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    vector::populateVectorBitCastLoweringPatterns(patterns);
    vector::populateVectorBroadcastLoweringPatterns(patterns);
    vector::populateVectorMultiReductionLoweringPatterns(
        patterns, vector::VectorMultiReductionLowering::InnerParallel);
    vector::populateVectorShapeCastLoweringPatterns(patterns);
    vector::populateVectorTransposeLoweringPatterns(patterns,
                                                    vector::VectorTransposeLowering::EltWise);
    vector::populateVectorTransferLoweringPatterns(patterns, /*maxTransferRank=*/1);
    vector::populateVectorStepLoweringPatterns(patterns);
    vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](gpu::GPUFuncOp function) { hoistAllocations(function); });
  }

  /// Private memory belongs to the thread, not to an iteration: in a loop it would be taken again
  /// and again.
  void hoistAllocations(gpu::GPUFuncOp function) {
    Block &entry = function.getBody().front();
    SmallVector<memref::AllocaOp> allocations;
    function.walk([&](memref::AllocaOp op) {
      if (op->getBlock() != &entry && op.getType().hasStaticShape())
        allocations.push_back(op);
    });
    for (memref::AllocaOp op : allocations) {
      op->moveBefore(&entry, entry.begin());
      ++hoisted;
    }
  }
};

} // namespace
