// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scans: an element counts in all results from its place on.

#include "dialects/aten/Scans.h"
#include "passes/gradient/differentiate/Models.h"

#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

/// One tensor along the dim of a scan. A number (0-dim tensor) is a vector of one element here.
struct Row {
  Derivation &d;
  int64_t dim;

  template <typename Op> Expr scan(Expr x) const {
    if constexpr (requires(Op op) { op.getDtype(); })
      return d.of(Op::create(d.builder, d.emit.getLoc(), x.value, dim, TypeAttr()));
    else
      return d.of(Op::create(d.builder, d.emit.getLoc(), x.value, dim));
  }
  /// From the end.
  template <typename Op> Expr reversed(Expr x) const { return flip(scan<Op>(flip(x, dim)), dim); }
};

struct CumsumGradient : GradientModel<CumsumGradient, aten::CumsumOp> {
  static LogicalResult run(Derivation &d, aten::CumsumOp op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    Row row{d, static_cast<int64_t>(op.getDim())};
    d.add(0, grad.rank() == 0 ? grad : row.reversed<aten::CumsumOp>(grad));
    return success();
  }
};

/// In front of the first 0 of a row, products are divided by the element. Of that 0, what counts
/// are the products of all others up to the next 0; of elements behind it, nothing does.
struct CumprodGradient : GradientModel<CumprodGradient, aten::CumprodOp> {
  static LogicalResult run(Derivation &d, aten::CumprodOp op) {
    Expr grad = d.grad(), self = d.of(op.getSelf());
    if (!grad)
      return success();
    if (std::optional<Type> type = op.getDtype())
      self = cast(self, *type);
    if (grad.rank() == 0) {
      d.add(0, grad);
      return success();
    }
    Row row{d, static_cast<int64_t>(op.getDim())};
    Type i64 = d.builder.getI64Type();
    Expr isZero = eq(self, 0), zeros = row.scan<aten::CumsumOp>(cast(isZero, i64));
    Expr isBefore = eq(zeros, 0), isFirst = logicalAnd(isZero, eq(zeros, 1));
    Expr ofBefore = row.reversed<aten::CumsumOp>(where(isBefore, grad * d.result(), 0)) /
                    where(isZero, 1, self);
    Expr others = row.scan<aten::CumprodOp>(where(isFirst, 1, self));
    Expr ofFirst = row.reversed<aten::CumsumOp>(where(eq(zeros, 1), grad * others, 0));
    d.add(0, where(isBefore, ofBefore, where(isFirst, ofFirst, 0)));
    return success();
  }
};

/// To the last place so far whose element is the extremum.
template <typename Op> struct ExtremumScanGradient : GradientModel<ExtremumScanGradient<Op>, Op> {
  static LogicalResult run(Derivation &d, Op op) {
    Expr grad = d.grad();
    if (!grad)
      return success();
    if (grad.rank() == 0) {
      d.add(0, grad);
      return success();
    }
    auto dim = static_cast<int64_t>(op.getDim());
    Expr self = d.of(op.getSelf()), isIt = eq(self, d.result());
    isIt = logicalOr(isIt, d.of(d.emit.template unary<aten::IsnanOp>(self.value)));
    Expr place = d.positions(d.size(op.getSelf(), dim), dim, self.rank(), d.builder.getI64Type());
    Row row{d, dim};
    Expr places = row.scan<aten::CummaxOp>(where(isIt, place, 0));
    d.add(0, d.of(aten::ScatterAddOp::create(d.builder, d.emit.getLoc(),
                                             d.zerosLike(op.getSelf()).value, op.getDim(),
                                             places.value, grad.value)));
    return success();
  }
};

/// The sum of grad exp(self - result) over all results from the element on. As the exponential of
/// one sum of logarithms for positive cotangents and one for negative ones, as nothing overflows
/// then.
struct LogcumsumexpGradient : GradientModel<LogcumsumexpGradient, aten::LogcumsumexpOp> {
  static LogicalResult run(Derivation &d, aten::LogcumsumexpOp op) {
    Expr grad = d.grad(), self = d.of(op.getSelf());
    if (!grad)
      return success();
    if (grad.rank() == 0) {
      d.add(0, grad);
      return success();
    }
    Row row{d, static_cast<int64_t>(op.getDim())};
    constexpr double none = -std::numeric_limits<double>::infinity();
    auto ofSign = [&](Expr size, Expr has) {
      Expr log = where(has, shardc::log(where(has, size, 1)) - d.result(), none);
      return exp(row.reversed<aten::LogcumsumexpOp>(log) + self);
    };
    Expr positive = ofSign(grad, gt(grad, 0)), negative = ofSign(-grad, lt(grad, 0));
    d.add(0, positive - negative);
    return success();
  }
};

} // namespace

void shardc::attachScanGradients(MLIRContext *context) {
  aten::CumsumOp::attachInterface<CumsumGradient>(*context);
  aten::CumprodOp::attachInterface<CumprodGradient>(*context);
  aten::CummaxOp::attachInterface<ExtremumScanGradient<aten::CummaxOp>>(*context);
  aten::CumminOp::attachInterface<ExtremumScanGradient<aten::CumminOp>>(*context);
  aten::LogcumsumexpOp::attachInterface<LogcumsumexpGradient>(*context);
}
