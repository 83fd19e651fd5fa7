// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
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

/// What is reduced may be added up in any order. Nothing else gets flags: a reciprocal in place of
/// a division makes x / inf a NaN, and reordering (x + c) - c loses what the model meant.
/// Returns how many combinations got flags.
unsigned allowReordering(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0)
    return 0;
  unsigned count = 0;
  using Flags = arith::FastMathFlags;
  auto allow = [](Operation *target, Flags flags) {
    if (auto math = dyn_cast_or_null<arith::ArithFastMathInterface>(target))
      target->setAttr(math.getFastMathAttrName(),
                      arith::FastMathFlagsAttr::get(target->getContext(), flags));
  };
  for (auto [yielded, accumulator] :
       llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), op.getRegionOutputArgs())) {
    Operation *combine = yielded.getDefiningOp();
    if (!combine || !llvm::is_contained(combine->getOperands(), accumulator))
      continue;
    // A product that is added may be one fused operation with the sum.
    for (Value operand : combine->getOperands())
      if (operand.getDefiningOp<arith::MulFOp>())
        allow(operand.getDefiningOp(), Flags::contract);
    allow(combine, Flags::reassoc | Flags::contract | Flags::nsz);
    ++count;
  }
  return count;
}

uint64_t countFunctions(func::FuncOp kernel) {
  uint64_t count = 0;
  kernel.walk([&](Operation *op) { count += hasGoodApproximation(op->getName().getStringRef()); });
  return count;
}

struct ApproximateMath : cpu::impl::CpuApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr))
      return;
    kernel.walk([&](linalg::GenericOp op) { reordered += allowReordering(op); });
    uint64_t before = countFunctions(kernel);
    RewritePatternSet patterns(&getContext());
    populateMathPolynomialApproximationPatterns(patterns, hasGoodApproximation);
    if (failed(applyPatternsGreedily(kernel, std::move(patterns))))
      return signalPassFailure();
    expanded += before - countFunctions(kernel);
  }
};

} // namespace
