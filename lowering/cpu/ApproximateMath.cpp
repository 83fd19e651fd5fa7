// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/Passes.h"
#include "lowering/exec/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUAPPROXIMATEMATH
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;

namespace {

/// Functions whose approximation is within a few units in the last place over the whole range of
/// f32. (sin and cos are not: their range reduction loses all digits of large arguments.)
bool hasGoodApproximation(StringRef name) {
  return llvm::is_contained({math::ExpOp::getOperationName(), math::ExpM1Op::getOperationName(),
                             math::TanhOp::getOperationName(), math::ErfOp::getOperationName(),
                             math::LogOp::getOperationName(), math::Log2Op::getOperationName(),
                             math::Log1pOp::getOperationName()},
                            name);
}

struct ApproximateMath : cpu::impl::CpuApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr))
      return;
    using Flags = arith::FastMathFlags;
    Flags flags = Flags::reassoc | Flags::contract | Flags::nsz | Flags::arcp | Flags::afn;
    kernel.walk([&](arith::ArithFastMathInterface op) {
      op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(&getContext(), flags));
    });
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, hasGoodApproximation);
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
