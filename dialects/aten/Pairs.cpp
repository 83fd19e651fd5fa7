// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/Pairs.h"

#include "dialects/aten/BuiltSizes.h"

#include <limits>

using namespace mlir;
using namespace shardc;

static int64_t lastDim(Value z) { return aten::typeOf(z).getRank() - 1; }

Value Pairs::part(Value z, int64_t index) {
  return aten::SelectOp::create(emit.getBuilder(), emit.getLoc(), z, lastDim(z), index, Value());
}

Value Pairs::make(Value real, Value imag) {
  return aten::StackOp::create(emit.getBuilder(), emit.getLoc(), ValueRange{real, imag},
                               aten::typeOf(real).getRank());
}

Value Pairs::ofReal(Value x) {
  return aten::ConstantPadNdOp::create(emit.getBuilder(), emit.getLoc(), beside(x),
                                       ArrayRef<int64_t>{0, 1}, llvm::APFloat(0.0));
}

Value Pairs::number(double real, double imag, Type elementType) {
  OpBuilder &builder = emit.getBuilder();
  auto type = RankedTensorType::get({2}, elementType);
  return aten::ConstantOp::create(
      builder, emit.getLoc(), type,
      DenseElementsAttr::get(type, {Attribute(builder.getFloatAttr(elementType, real)),
                                    Attribute(builder.getFloatAttr(elementType, imag))}));
}

Value Pairs::conj(Value z) { return emit.mul(z, number(1, -1, aten::elementTypeOf(z))); }

Value Pairs::timesI(Value z) { return make(neg(imag(z)), real(z)); }

Value Pairs::mul(Value z, Value w) {
  Value a = real(z), b = imag(z), c = real(w), d = imag(w);
  return make(emit.sub(emit.mul(a, c), emit.mul(b, d)), emit.add(emit.mul(a, d), emit.mul(b, c)));
}

Value Pairs::magnitude(Value z) {
  Value size = emit.amax(emit.unary<aten::AbsOp>(z), {lastDim(z)}, /*keepdim=*/false);
  auto fixed = aten::AliasOp::create(emit.getBuilder(), emit.getLoc(), size);
  fixed.setDetached(true);
  Value infinity = constant(std::numeric_limits<double>::infinity(), z);
  Value isEdge = emit.binary<aten::LogicalOrOp>(emit.binary<aten::EqOp>(fixed, constant(0, z)),
                                                emit.binary<aten::EqOp>(fixed, infinity));
  return emit.where(isEdge, constant(1, z), fixed);
}

Value Pairs::div(Value z, Value w) {
  Value size = magnitude(w), unit = emit.div(w, beside(size));
  Value square = emit.sum(emit.mul(unit, unit), {lastDim(unit)}, /*keepdim=*/false);
  return emit.div(mul(z, conj(unit)), beside(emit.mul(square, size)));
}

Value Pairs::reciprocal(Value w) {
  Value size = magnitude(w), unit = emit.div(w, beside(size));
  Value square = emit.sum(emit.mul(unit, unit), {lastDim(unit)}, /*keepdim=*/false);
  return emit.div(conj(unit), beside(emit.mul(square, size)));
}

Value Pairs::abs(Value z) {
  Value size = magnitude(z), unit = emit.div(z, beside(size));
  Value square = emit.sum(emit.mul(unit, unit), {lastDim(unit)}, /*keepdim=*/false);
  // The root of another number where its derivative would be infinite.
  Value zero = constant(0, z), isNone = emit.binary<aten::EqOp>(square, zero);
  Value root = emit.unary<aten::SqrtOp>(emit.where(isNone, constant(1, z), square));
  return emit.mul(emit.where(isNone, zero, root), size);
}

// The angle of 0, which depends on the signs of its parts, has a derivative of 0.
Value Pairs::angle(Value z) {
  Value a = real(z), b = imag(z), isNone = isZero(z);
  auto fixed =
      aten::AliasOp::create(emit.getBuilder(), emit.getLoc(), emit.binary<aten::Atan2Op>(b, a));
  fixed.setDetached(true);
  Value angle = emit.binary<aten::Atan2Op>(emit.where(isNone, constant(0, z), b),
                                           emit.where(isNone, constant(1, z), a));
  return emit.where(isNone, fixed, angle);
}

Value Pairs::isZero(Value z) {
  Value isNone = emit.binary<aten::EqOp>(z, constant(0, z));
  OpBuilder &builder = emit.getBuilder();
  return aten::AllOp::create(builder, emit.getLoc(), isNone,
                             builder.getDenseI64ArrayAttr({lastDim(z)}), /*keepdim=*/false);
}

Value Pairs::exp(Value z) {
  Value b = imag(z);
  return scale(make(emit.unary<aten::CosOp>(b), emit.unary<aten::SinOp>(b)),
               emit.unary<aten::ExpOp>(real(z)));
}

Value Pairs::log(Value z) { return make(emit.unary<aten::LogOp>(abs(z)), angle(z)); }

// Of the two roots, the one in the right half of the plane. Of a negative real number, the sign of
// the imaginary part says which one, that of 0 too.
Value Pairs::sqrt(Value z) {
  Value a = real(z), b = imag(z), zero = constant(0, z), half = constant(0.5, z);
  // |a|, which has a derivative at 0: that of the part that is taken there.
  Value isRight = emit.binary<aten::GeOp>(a, zero);
  Value sum = emit.add(abs(z), emit.where(isRight, a, neg(a)));
  Value larger = emit.unary<aten::SqrtOp>(emit.mul(sum, half));
  Value isNone = emit.binary<aten::EqOp>(sum, zero);
  Value smaller = emit.mul(emit.div(b, emit.where(isNone, constant(1, z), larger)), half);
  Value isReal = emit.binary<aten::EqOp>(b, zero), one = constant(1, z);
  Value signOfZero = emit.div(one, emit.where(isReal, b, one));
  Value isLow = emit.binary<aten::LogicalOrOp>(emit.binary<aten::LtOp>(b, zero),
                                               emit.binary<aten::LtOp>(signOfZero, zero));
  return make(emit.where(isRight, larger, emit.where(isLow, neg(smaller), smaller)),
              emit.where(isRight, smaller, emit.where(isLow, neg(larger), larger)));
}

Value Pairs::sin(Value z) {
  Value a = real(z), b = imag(z);
  return make(emit.mul(emit.unary<aten::SinOp>(a), emit.unary<aten::CoshOp>(b)),
              emit.mul(emit.unary<aten::CosOp>(a), emit.unary<aten::SinhOp>(b)));
}

Value Pairs::cos(Value z) {
  Value a = real(z), b = imag(z);
  return make(emit.mul(emit.unary<aten::CosOp>(a), emit.unary<aten::CoshOp>(b)),
              neg(emit.mul(emit.unary<aten::SinOp>(a), emit.unary<aten::SinhOp>(b))));
}

Value Pairs::sinh(Value z) {
  Value a = real(z), b = imag(z);
  return make(emit.mul(emit.unary<aten::SinhOp>(a), emit.unary<aten::CosOp>(b)),
              emit.mul(emit.unary<aten::CoshOp>(a), emit.unary<aten::SinOp>(b)));
}

Value Pairs::cosh(Value z) {
  Value a = real(z), b = imag(z);
  return make(emit.mul(emit.unary<aten::CoshOp>(a), emit.unary<aten::CosOp>(b)),
              emit.mul(emit.unary<aten::SinhOp>(a), emit.unary<aten::SinOp>(b)));
}

// (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b), above and below divided by cosh^2 a.
Value Pairs::tanh(Value z) {
  Value b = imag(z), t = emit.unary<aten::TanhOp>(real(z)), square = emit.mul(t, t);
  Value rest = emit.sub(constant(1, z), square); // 1 / cosh^2 a
  Value cosine = emit.unary<aten::CosOp>(b), sine = emit.unary<aten::SinOp>(b);
  Value below = emit.add(square, emit.mul(emit.mul(cosine, cosine), rest));
  return make(emit.div(t, below), emit.div(emit.mul(emit.mul(sine, cosine), rest), below));
}

Value Pairs::sign(Value z) {
  Value size = abs(z), isNone = emit.binary<aten::EqOp>(size, constant(0, z));
  // At zero it has no derivative either.
  Value whole = emit.div(z, beside(emit.where(isNone, constant(1, z), size)));
  return emit.where(beside(isNone), constant(0, z), whole);
}

Value Pairs::pow(Value z, int64_t exponent) {
  if (exponent < 0)
    return reciprocal(pow(z, -exponent));
  Value result;
  for (Value power = z; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1)
      result = result ? mul(result, power) : power;
    if (exponent > 1)
      power = mul(power, power);
  }
  return result ? result
                : emit.add(emit.mul(z, constant(0, z)), number(1, 0, aten::elementTypeOf(z)));
}

// exp(w log z); of 0 it is 0, and 1 where w is 0 too.
Value Pairs::pow(Value z, Value w) {
  Type type = aten::elementTypeOf(z);
  Value isNone = beside(isZero(z)), one = number(1, 0, type);
  Value power = exp(mul(w, log(emit.where(isNone, one, z))));
  Value ofNone = emit.where(beside(isZero(w)), one, constant(0, z));
  return emit.where(isNone, ofNone, power);
}

Value Pairs::matmul(Value z, Value w) {
  OpBuilder &builder = emit.getBuilder();
  aten::BuiltSizes sizes(builder, emit.getLoc());
  auto shape = [&](Value x) {
    return llvm::map_to_vector(sizes.sizesOf(x), [&](Dim size) { return sizes.get(size); });
  };
  auto twice = [&](OpFoldResult size) { return sizes.get(sizes.mul(sizes.of(size), Dim(2))); };
  // [..., m, k, 2] as [..., m, 2k]
  SmallVector<OpFoldResult> left = shape(z), right = shape(w);
  SmallVector<OpFoldResult> rows(ArrayRef(left).drop_back(2));
  rows.push_back(twice(left[left.size() - 2]));
  // [..., k, n, 2] and i times that, as [..., 2k, 2n]
  int64_t columns = lastDim(w) - 1;
  Value both = aten::StackOp::create(builder, emit.getLoc(), ValueRange{w, timesI(w)}, columns);
  SmallVector<OpFoldResult> matrix(ArrayRef(right).drop_back(3));
  matrix.append({twice(right[columns - 1]), twice(right[columns])});
  Value product = emit.binary<aten::MatmulOp>(emit.view(z, rows), emit.view(both, matrix));
  product.getDefiningOp()->setAttr(kOfComplexAttr, builder.getUnitAttr());
  SmallVector<OpFoldResult> result = shape(product);
  result.back() = right[columns];
  result.push_back(builder.getIndexAttr(2));
  return emit.view(product, result);
}
