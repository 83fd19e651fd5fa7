// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/ScalarBuilder.h"

#include "mlir/IR/BuiltinTypes.h"

#include <limits>

using namespace mlir;

namespace shardc {

Type storageType(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return type;
  if (integer.getWidth() == 1)
    return IntegerType::get(type.getContext(), 8);
  return IntegerType::get(type.getContext(), integer.getWidth());
}

RankedTensorType storageType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), storageType(type.getElementType()));
}

Type computeType(Type type) {
  if (type.isF16() || type.isBF16())
    return Float32Type::get(type.getContext());
  if (auto integer = dyn_cast<IntegerType>(type))
    return IntegerType::get(type.getContext(), integer.getWidth());
  return type;
}

Value ScalarBuilder::load(Value stored) const {
  if (isBool()) {
    Value zero = make<arith::ConstantIntOp>(stored.getType(), 0);
    return make<arith::CmpIOp>(arith::CmpIPredicate::ne, stored, zero);
  }
  if (stored.getType() != compute())
    return make<arith::ExtFOp>(compute(), stored);
  return stored;
}

Value ScalarBuilder::store(Value value) const {
  Type stored = storageType(type);
  if (isBool())
    return make<arith::ExtUIOp>(stored, value);
  if (stored != compute())
    return make<arith::TruncFOp>(stored, value);
  return value;
}

Value ScalarBuilder::convert(Value value, Type from) const {
  if (from == type)
    return value;
  ScalarBuilder source = as(from);
  if (isBool())
    return source.isNonZero(value);
  Type to = compute();
  if (isFloat()) {
    if (source.isFloat()) {
      // Rounding to a 16-bit type is a step of its own, which a later use must see.
      unsigned sourceWidth = value.getType().getIntOrFloatBitWidth();
      unsigned width = to.getIntOrFloatBitWidth();
      Value result = value;
      if (sourceWidth < width)
        result = make<arith::ExtFOp>(to, value);
      else if (sourceWidth > width)
        result = make<arith::TruncFOp>(to, value);
      if (storageType(type) != to)
        result = load(store(result));
      return result;
    }
    Value result =
        source.isUnsigned() ? make<arith::UIToFPOp>(to, value) : make<arith::SIToFPOp>(to, value);
    return storageType(type) != to ? load(store(result)) : result;
  }
  if (source.isFloat()) {
    unsigned width = to.getIntOrFloatBitWidth();
    if (isUnsigned() && width == 64)
      return make<arith::FPToUIOp>(to, value);
    if (!isUnsigned() && width >= 32)
      return make<arith::FPToSIOp>(to, value);
    // By way of a wider type: what does not fit wraps around, as in PyTorch.
    Type between = width == 32 ? builder.getI64Type() : builder.getI32Type();
    return make<arith::TruncIOp>(to, make<arith::FPToSIOp>(between, value));
  }
  unsigned sourceWidth = value.getType().getIntOrFloatBitWidth();
  unsigned width = to.getIntOrFloatBitWidth();
  if (sourceWidth > width)
    return make<arith::TruncIOp>(to, value);
  if (sourceWidth == width)
    return value;
  return source.isUnsigned() ? make<arith::ExtUIOp>(to, value) : make<arith::ExtSIOp>(to, value);
}

Value ScalarBuilder::constant(double value) const {
  if (isBool())
    return constantInt(value != 0);
  if (!isFloat())
    return constantInt(static_cast<int64_t>(value));
  return make<arith::ConstantOp>(builder.getFloatAttr(compute(), value));
}

Value ScalarBuilder::constantInt(int64_t value) const {
  if (isFloat())
    return constant(static_cast<double>(value));
  auto integer = cast<IntegerType>(compute());
  return make<arith::ConstantOp>(
      builder.getIntegerAttr(integer, APInt(64, value, true).trunc(integer.getWidth())));
}

Value ScalarBuilder::fromIndex(Value index) const {
  Type i64 = builder.getI64Type();
  return convert(make<arith::IndexCastOp>(i64, index), i64);
}

Value ScalarBuilder::add(Value a, Value b) const {
  if (isBool())
    return make<arith::OrIOp>(a, b);
  return isFloat() ? make<arith::AddFOp>(a, b) : make<arith::AddIOp>(a, b);
}

Value ScalarBuilder::sub(Value a, Value b) const {
  return isFloat() ? make<arith::SubFOp>(a, b) : make<arith::SubIOp>(a, b);
}

Value ScalarBuilder::mul(Value a, Value b) const {
  if (isBool())
    return make<arith::AndIOp>(a, b);
  return isFloat() ? make<arith::MulFOp>(a, b) : make<arith::MulIOp>(a, b);
}

/// A divisor that cannot trap: neither 0 nor, for signed integers, -1.
static Value safeDivisor(const ScalarBuilder &s, Value b, Value &isZero, Value &isMinusOne) {
  using Predicate = ScalarBuilder::Predicate;
  Value one = s.constantInt(1);
  isZero = s.compare(Predicate::eq, b, s.constantInt(0));
  Value divisor = s.select(isZero, one, b);
  if (!s.isUnsigned()) {
    isMinusOne = s.compare(Predicate::eq, b, s.constantInt(-1));
    divisor = s.select(isMinusOne, one, divisor);
  }
  return divisor;
}

Value ScalarBuilder::div(Value a, Value b) const {
  if (isFloat())
    return make<arith::DivFOp>(a, b);
  Value isZero, isMinusOne;
  Value divisor = safeDivisor(*this, b, isZero, isMinusOne);
  Value quotient =
      isUnsigned() ? make<arith::DivUIOp>(a, divisor) : make<arith::DivSIOp>(a, divisor);
  if (isMinusOne)
    quotient = select(isMinusOne, neg(a), quotient);
  return select(isZero, constantInt(0), quotient);
}

Value ScalarBuilder::remainder(Value a, Value b) const {
  if (isFloat())
    return make<arith::RemFOp>(a, b);
  Value isZero, isMinusOne;
  Value divisor = safeDivisor(*this, b, isZero, isMinusOne);
  return isUnsigned() ? make<arith::RemUIOp>(a, divisor) : make<arith::RemSIOp>(a, divisor);
}

Value ScalarBuilder::floorDiv(Value a, Value b) const {
  Value quotient = div(a, b);
  if (isUnsigned())
    return quotient;
  // Rounding toward zero was upwards if signs differ and something remains.
  Value rest = remainder(a, b);
  Value zero = constantInt(0);
  Value inexact = compare(Predicate::ne, rest, zero);
  Value signsDiffer = compare(Predicate::lt, make<arith::XOrIOp>(rest, b), zero);
  Value down = make<arith::AndIOp>(inexact, signsDiffer);
  return select(down, sub(quotient, constantInt(1)), quotient);
}

Value ScalarBuilder::neg(Value a) const {
  return isFloat() ? make<arith::NegFOp>(a) : sub(constantInt(0), a);
}

Value ScalarBuilder::max(Value a, Value b) const {
  if (isFloat())
    return make<arith::MaximumFOp>(a, b);
  return isUnsigned() ? make<arith::MaxUIOp>(a, b) : make<arith::MaxSIOp>(a, b);
}

Value ScalarBuilder::min(Value a, Value b) const {
  if (isFloat())
    return make<arith::MinimumFOp>(a, b);
  return isUnsigned() ? make<arith::MinUIOp>(a, b) : make<arith::MinSIOp>(a, b);
}

Value ScalarBuilder::select(Value condition, Value a, Value b) const {
  return make<arith::SelectOp>(condition, a, b);
}

Value ScalarBuilder::compare(Predicate predicate, Value a, Value b) const {
  if (isFloat()) {
    constexpr arith::CmpFPredicate kinds[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                              arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                              arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
    return make<arith::CmpFOp>(kinds[static_cast<int>(predicate)], a, b);
  }
  using P = arith::CmpIPredicate;
  constexpr P signedKinds[] = {P::eq, P::ne, P::slt, P::sle, P::sgt, P::sge};
  constexpr P unsignedKinds[] = {P::eq, P::ne, P::ult, P::ule, P::ugt, P::uge};
  int kind = static_cast<int>(predicate);
  return make<arith::CmpIOp>(isUnsigned() ? unsignedKinds[kind] : signedKinds[kind], a, b);
}

Value ScalarBuilder::isNonZero(Value a) const {
  return isBool() ? a : compare(Predicate::ne, a, constant(0));
}

Value ScalarBuilder::lowest() const {
  if (isFloat())
    return constant(-std::numeric_limits<double>::infinity());
  unsigned width = compute().getIntOrFloatBitWidth();
  APInt value = isUnsigned() ? APInt::getZero(width) : APInt::getSignedMinValue(width);
  return make<arith::ConstantOp>(builder.getIntegerAttr(compute(), value));
}

Value ScalarBuilder::highest() const {
  if (isFloat())
    return constant(std::numeric_limits<double>::infinity());
  unsigned width = compute().getIntOrFloatBitWidth();
  APInt value = isUnsigned() ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  return make<arith::ConstantOp>(builder.getIntegerAttr(compute(), value));
}

} // namespace shardc
