// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Neighborhood attention: each of its three products is linear in both operands, and the cotangents
// of all are such products again.

#include "dialects/aten/Neighborhood.h"
#include "passes/gradient/differentiate/Models.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Product `Made` of these operands, with the neighborhoods of `op`.
template <typename Made, typename Op> Expr like(Derivation &d, Op op, Expr lhs, Expr rhs) {
  return d.of(Made::create(d.builder, d.emit.getLoc(), lhs.value, rhs.value, op.getKernelSize(),
                           op.getStride(), op.getDilation(), op.getIsCausal(), op.getCutAttr(),
                           op.getStaticPlace(), op.getPlace()));
}

struct NeighborhoodQkGradient : GradientModel<NeighborhoodQkGradient, aten::NeighborhoodQkOp> {
  static LogicalResult run(Derivation &d, aten::NeighborhoodQkOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, like<aten::NeighborhoodAvOp>(d, op, grad, d.of(op.getKey())));
    if (d.needs(1))
      d.add(1, like<aten::NeighborhoodAdjointOp>(d, op, grad, d.of(op.getQuery())));
    return success();
  }
};

struct NeighborhoodAvGradient : GradientModel<NeighborhoodAvGradient, aten::NeighborhoodAvOp> {
  static LogicalResult run(Derivation &d, aten::NeighborhoodAvOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, like<aten::NeighborhoodQkOp>(d, op, grad, d.of(op.getValue())));
    if (d.needs(1))
      d.add(1, like<aten::NeighborhoodAdjointOp>(d, op, d.of(op.getWeights()), grad));
    return success();
  }
};

struct NeighborhoodAdjointGradient
    : GradientModel<NeighborhoodAdjointGradient, aten::NeighborhoodAdjointOp> {
  static LogicalResult run(Derivation &d, aten::NeighborhoodAdjointOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (d.needs(0))
      d.add(0, like<aten::NeighborhoodQkOp>(d, op, d.of(op.getRows()), grad));
    if (d.needs(1))
      d.add(1, like<aten::NeighborhoodAvOp>(d, op, d.of(op.getWeights()), grad));
    return success();
  }
};

} // namespace

void shardc::attachNeighborhoodGradients(MLIRContext *context) {
  aten::NeighborhoodQkOp::attachInterface<NeighborhoodQkGradient>(*context);
  aten::NeighborhoodAvOp::attachInterface<NeighborhoodAvGradient>(*context);
  aten::NeighborhoodAdjointOp::attachInterface<NeighborhoodAdjointGradient>(*context);
}
