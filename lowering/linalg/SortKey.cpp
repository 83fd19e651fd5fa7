// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/SortKey.h"

using namespace mlir;
using namespace shardc;

IntegerType shardc::sortKeyType(Type element) {
  return IntegerType::get(element.getContext(), computeType(element).getIntOrFloatBitWidth());
}

Value shardc::sortKey(OpBuilder &b, Location loc, Value x, bool isUnsigned, bool descending) {
  Type element = x.getType();
  IntegerType key = sortKeyType(element);
  unsigned width = key.getWidth();
  auto number = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(key, value));
  };
  Value result = x;
  if (isa<FloatType>(element)) {
    ScalarBuilder s(b, loc, element);
    Value wide = s.load(x);
    Value zero = arith::ConstantOp::create(b, loc, b.getFloatAttr(wide.getType(), 0.0));
    Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, wide, zero);
    Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, wide, wide);
    Value bits = arith::BitcastOp::create(b, loc, key, wide);
    Value none = number(APInt::getZero(width)), most = number(APInt::getSignedMaxValue(width));
    Value isNegative = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, bits, none);
    Value flipped = arith::XOrIOp::create(b, loc, bits, most);
    result = arith::SelectOp::create(b, loc, isNegative, flipped, bits);
    result = arith::SelectOp::create(b, loc, isZero, none, result);
    result = arith::SelectOp::create(b, loc, isNaN, most, result);
  } else if (isUnsigned) {
    result = arith::XOrIOp::create(b, loc, x, number(APInt::getSignMask(width)));
  }
  if (descending)
    result = arith::XOrIOp::create(b, loc, result, number(APInt::getAllOnes(width)));
  return result;
}
