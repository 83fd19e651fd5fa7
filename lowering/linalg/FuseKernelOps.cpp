// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Passes.h"

#include "dialects/exec/Exec.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shardc {
#define GEN_PASS_DEF_FUSEKERNELOPS
#include "lowering/linalg/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct FuseKernelOps : shardc::impl::FuseKernelOpsBase<FuseKernelOps> {
  static uint64_t countOps(func::FuncOp kernel) {
    uint64_t count = 0;
    kernel.walk([&](linalg::LinalgOp) { ++count; });
    return count;
  }

  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr))
      return;
    MLIRContext *context = &getContext();
    uint64_t before = countOps(kernel);
    RewritePatternSet patterns(context);
    linalg::populateElementwiseOpsFusionPatterns(
        patterns, [](OpOperand *operand) { return operand->get().hasOneUse(); });
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, context);
    tensor::EmptyOp::getCanonicalizationPatterns(patterns, context);
    // Sizes are those of arguments, not of intermediate values.
    memref::populateResolveRankedShapedTypeResultDimsPatterns(patterns);
    memref::populateResolveShapedTypeResultDimsPatterns(patterns);
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return signalPassFailure();
    merged += before - countOps(kernel);
  }
};

} // namespace
