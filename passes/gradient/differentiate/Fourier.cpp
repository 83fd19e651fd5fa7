// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fourier transforms: linear, so that a cotangent goes back through the transposed one. Of pairs
// that is the conjugate transpose: the other direction, as PyTorch has it for complex numbers.

#include "passes/gradient/differentiate/Models.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/Fourier.h"
#include "dialects/aten/Pairs.h"

using namespace mlir;
using namespace shardc;

namespace {

struct C2cGradient : GradientModel<C2cGradient, aten::FftC2cOp> {
  static LogicalResult run(Derivation &d, aten::FftC2cOp op) {
    if (Expr grad = d.grad())
      d.add(0, d.of(aten::FftC2cOp::create(d.builder, d.emit.getLoc(), grad.value, op.getDim(),
                                           op.getNormalization(), !op.getForward())));
    return success();
  }
};

/// 1 for elements that are their own conjugates in a transform of n real numbers, element 0 and
/// element n / 2 of an even number, and `other` for the rest; along `dim` of a tensor of this rank.
Expr weights(Derivation &d, OpFoldResult n, int64_t dim, int64_t rank, Type type, double other) {
  aten::BuiltSizes sizes(d.builder, d.emit.getLoc());
  Dim half = sizes.ceilDiv(sizes.add(sizes.of(n), Dim(1)), 2);
  Type i64 = d.builder.getI64Type();
  Expr k = d.positions(sizes.get(half), dim, rank, i64);
  Expr isAlone = logicalOr(eq(k, 0), eq(k + k, d.scalar(n, i64)));
  return where(isAlone, d.of(d.emit.scalar(1, type)), other);
}

/// What the elements 0 to n / 2 pass back is the real part of the inverse transform of them alone:
/// half of what they and their conjugates together make.
struct R2cGradient : GradientModel<R2cGradient, aten::FftR2cOp> {
  static LogicalResult run(Derivation &d, aten::FftR2cOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    auto dim = static_cast<int64_t>(op.getDim());
    Location loc = d.emit.getLoc();
    if (!op.getOnesided()) {
      Value back = aten::FftC2cOp::create(d.builder, loc, grad.value, dim, op.getNormalization(),
                                          /*forward=*/false);
      d.add(0, d.of(Pairs(d.emit).real(back)));
      return success();
    }
    OpFoldResult n = d.size(op.getSelf(), dim);
    Expr weighted = grad * weights(d, n, dim, grad.rank(), grad.elementType(), 0.5);
    SmallVector<int64_t> fixed;
    SmallVector<Value> dynamic;
    splitMixed(n, fixed, dynamic);
    d.add(0, d.of(aten::FftC2rOp::create(d.builder, loc, weighted.value, dim, fixed, dynamic,
                                         op.getNormalization())));
    return success();
  }
};

struct C2rGradient : GradientModel<C2rGradient, aten::FftC2rOp> {
  static LogicalResult run(Derivation &d, aten::FftC2rOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    auto dim = static_cast<int64_t>(op.getDim());
    Expr forward = d.of(aten::FftR2cOp::create(d.builder, d.emit.getLoc(), grad.value, dim,
                                               op.getNormalization(), /*onesided=*/true));
    OpFoldResult n = d.size(grad.value, dim);
    d.add(0, forward * weights(d, n, dim, forward.rank(), forward.elementType(), 2));
    return success();
  }
};

} // namespace

void shardc::attachFourierGradients(MLIRContext *context) {
  aten::FftC2cOp::attachInterface<C2cGradient>(*context);
  aten::FftR2cOp::attachInterface<R2cGradient>(*context);
  aten::FftC2rOp::attachInterface<C2rGradient>(*context);
}
