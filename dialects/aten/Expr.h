// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Formulas as C++ expressions: each operator builds the `aten` op of its name. Numbers take the
// element type of the tensor that they meet.
#ifndef SHARDC_DIALECTS_ATEN_EXPR_H
#define SHARDC_DIALECTS_ATEN_EXPR_H

#include "dialects/aten/Emitter.h"

namespace shardc {

struct Expr {
  mlir::Value value;
  Emitter *emit = nullptr;

  explicit operator bool() const { return value != nullptr; }
  Expr with(mlir::Value other) const { return {other, emit}; }
  mlir::Type elementType() const { return aten::elementTypeOf(value); }
  int64_t rank() const { return aten::typeOf(value).getRank(); }
  /// A number as a 0-dim tensor of this one's element type.
  Expr number(double x) const { return with(emit->scalar(x, elementType())); }
};

inline Expr operator+(Expr x, Expr y) { return x.with(x.emit->add(x.value, y.value)); }
inline Expr operator-(Expr x, Expr y) { return x.with(x.emit->sub(x.value, y.value)); }
inline Expr operator*(Expr x, Expr y) { return x.with(x.emit->mul(x.value, y.value)); }
inline Expr operator/(Expr x, Expr y) { return x.with(x.emit->div(x.value, y.value)); }
inline Expr operator-(Expr x) { return x.with(x.emit->unary<aten::NegOp>(x.value)); }
inline Expr operator+(Expr x, double y) { return x + x.number(y); }
inline Expr operator-(Expr x, double y) { return x - x.number(y); }
inline Expr operator-(double x, Expr y) { return y.number(x) - y; }
inline Expr operator*(Expr x, double y) { return y == 1 ? x : y == -1 ? -x : x * x.number(y); }
inline Expr operator*(double x, Expr y) { return y * x; }
inline Expr operator/(Expr x, double y) { return x / x.number(y); }
inline Expr operator/(double x, Expr y) { return y.number(x) / y; }

#define SHARDC_UNARY(name, Op)                                                                     \
  inline Expr name(Expr x) { return x.with(x.emit->unary<aten::Op>(x.value)); }
SHARDC_UNARY(exp, ExpOp)
SHARDC_UNARY(log, LogOp)
SHARDC_UNARY(sin, SinOp)
SHARDC_UNARY(cos, CosOp)
SHARDC_UNARY(sinh, SinhOp)
SHARDC_UNARY(cosh, CoshOp)
SHARDC_UNARY(tanh, TanhOp)
SHARDC_UNARY(erf, ErfOp)
SHARDC_UNARY(log1p, Log1pOp)
SHARDC_UNARY(sqrt, SqrtOp)
SHARDC_UNARY(rsqrt, RsqrtOp)
SHARDC_UNARY(sigmoid, SigmoidOp)
SHARDC_UNARY(abs, AbsOp)
SHARDC_UNARY(sign, SignOp)
SHARDC_UNARY(logicalNot, LogicalNotOp)
#undef SHARDC_UNARY

#define SHARDC_BINARY(name, Op)                                                                    \
  inline Expr name(Expr x, Expr y) { return x.with(x.emit->binary<aten::Op>(x.value, y.value)); }  \
  inline Expr name(Expr x, double y) { return name(x, x.number(y)); }
SHARDC_BINARY(eq, EqOp)
SHARDC_BINARY(lt, LtOp)
SHARDC_BINARY(le, LeOp)
SHARDC_BINARY(gt, GtOp)
SHARDC_BINARY(ge, GeOp)
SHARDC_BINARY(pow, PowOp)
#undef SHARDC_BINARY
inline Expr logicalAnd(Expr x, Expr y) {
  return x.with(x.emit->binary<aten::LogicalAndOp>(x.value, y.value));
}
inline Expr logicalOr(Expr x, Expr y) {
  return x.with(x.emit->binary<aten::LogicalOrOp>(x.value, y.value));
}

inline Expr square(Expr x) { return x * x; }
inline Expr where(Expr condition, Expr x, Expr y) {
  return x.with(x.emit->where(condition.value, x.value, y.value));
}
inline Expr where(Expr condition, Expr x, double y) { return where(condition, x, x.number(y)); }
inline Expr where(Expr condition, double x, Expr y) { return where(condition, y.number(x), y); }
/// The quotient rounded toward zero ("trunc"), or down ("floor").
inline Expr roundedQuotient(Expr x, Expr y, llvm::StringRef mode) {
  mlir::OpBuilder &builder = x.emit->getBuilder();
  return x.with(aten::DivOp::create(builder, x.emit->getLoc(), x.value, y.value,
                                    builder.getStringAttr(mode)));
}
/// In another element type.
inline Expr cast(Expr x, mlir::Type elementType) {
  return x.with(x.emit->cast(x.value, elementType));
}
inline Expr sum(Expr x, llvm::ArrayRef<int64_t> dims, bool keepdim) {
  return dims.empty() ? x : x.with(x.emit->sum(x.value, dims, keepdim));
}
/// Keeps dims as size 1.
inline Expr mean(Expr x, llvm::ArrayRef<int64_t> dims) {
  mlir::OpBuilder &builder = x.emit->getBuilder();
  return x.with(aten::MeanOp::create(builder, x.emit->getLoc(), x.value,
                                     builder.getDenseI64ArrayAttr(dims), /*keepdim=*/true,
                                     mlir::TypeAttr()));
}
inline Expr unsqueeze(Expr x, int64_t dim) { return x.with(x.emit->unsqueeze(x.value, dim)); }
inline Expr view(Expr x, llvm::ArrayRef<mlir::OpFoldResult> sizes) {
  return x.with(x.emit->view(x.value, sizes));
}
inline Expr expand(Expr x, llvm::ArrayRef<mlir::OpFoldResult> sizes) {
  llvm::SmallVector<int64_t> fixed;
  llvm::SmallVector<mlir::Value> dynamic;
  splitMixed(sizes, fixed, dynamic);
  return x.with(
      aten::ExpandOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, fixed, dynamic));
}
inline Expr transpose(Expr x, int64_t a, int64_t b) {
  return x.with(aten::TransposeOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, a, b));
}
inline Expr matmul(Expr x, Expr y) {
  return x.with(x.emit->binary<aten::MatmulOp>(x.value, y.value));
}
inline Expr tensordot(Expr x, Expr y, llvm::ArrayRef<int64_t> xDims,
                      llvm::ArrayRef<int64_t> yDims) {
  return x.with(aten::TensordotOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, y.value,
                                          xDims, yDims));
}
inline Expr flip(Expr x, llvm::ArrayRef<int64_t> dims) {
  return x.with(aten::FlipOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value, dims));
}

/// Zeros before and after along one dim; negative widths cut off.
inline Expr pad(Expr x, int64_t dim, int64_t before, int64_t after) {
  if (before == 0 && after == 0)
    return x;
  llvm::SmallVector<int64_t> widths(2 * (x.rank() - dim), 0);
  widths[widths.size() - 2] = before;
  widths.back() = after;
  return x.with(aten::ConstantPadNdOp::create(x.emit->getBuilder(), x.emit->getLoc(), x.value,
                                              widths, llvm::APFloat(0.0)));
}

} // namespace shardc

#endif // SHARDC_DIALECTS_ATEN_EXPR_H
