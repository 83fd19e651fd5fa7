// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Elementwise.h"

#include "dialects/aten/Aten.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace shardc {
namespace {

using Args = ArrayRef<Value>;
using Predicate = ScalarBuilder::Predicate;

/// other * alpha, without the product where alpha is 1.
template <typename Op> Value scaled(Operation *op, const ScalarBuilder &s, Value other) {
  double alpha = cast<Op>(op).getAlpha().convertToDouble();
  return alpha == 1 ? other : s.mul(other, s.constant(alpha));
}

Value add(Operation *op, const ScalarBuilder &s, Args args) {
  return s.add(args[0], scaled<aten::AddOp>(op, s, args[1]));
}
Value sub(Operation *op, const ScalarBuilder &s, Args args) {
  return s.sub(args[0], scaled<aten::SubOp>(op, s, args[1]));
}
Value mul(Operation *, const ScalarBuilder &s, Args args) { return s.mul(args[0], args[1]); }

/// Whether a remainder is not 0 and has another sign than the divisor.
Value signsDiffer(const ScalarBuilder &s, Value rest, Value divisor) {
  Value zero = s.constant(0);
  Value nonZero = s.compare(Predicate::ne, rest, zero);
  Value restNegative = s.compare(Predicate::lt, rest, zero);
  Value divisorNegative = s.compare(Predicate::lt, divisor, zero);
  Value differ = s.make<arith::XOrIOp>(restNegative, divisorNegative);
  return s.make<arith::AndIOp>(nonZero, differ);
}

/// x - y * floor(x / y), with the sign of y.
Value pythonRemainder(const ScalarBuilder &s, Value x, Value y) {
  Value rest = s.remainder(x, y);
  if (s.isUnsigned())
    return rest;
  return s.select(signsDiffer(s, rest, y), s.add(rest, y), rest);
}

Value div(Operation *op, const ScalarBuilder &s, Args args) {
  std::optional<StringRef> mode = cast<aten::DivOp>(op).getRoundingMode();
  if (!mode)
    return s.div(args[0], args[1]);
  if (!s.isFloat())
    return *mode == "floor" ? s.floorDiv(args[0], args[1]) : s.div(args[0], args[1]);
  // PyTorch's steps, each of which rounds to the element type.
  auto rounded = [&](Value x) { return s.load(s.store(x)); };
  if (*mode == "trunc")
    return s.make<math::TruncOp>(rounded(s.div(args[0], args[1])));
  // As Python: exact where floor(x / y) would round up across an integer.
  Value x = args[0], y = args[1];
  Value rest = s.remainder(x, y);
  Value quotient = rounded(s.div(rounded(s.sub(x, rest)), y));
  Value isDown = signsDiffer(s, rest, y);
  quotient = s.select(isDown, rounded(s.sub(quotient, s.constant(1))), quotient);
  Value floor = s.make<math::FloorOp>(quotient);
  Value low = s.compare(Predicate::gt, rounded(s.sub(quotient, floor)), s.constant(0.5));
  Value exact = s.select(low, s.add(floor, s.constant(1)), floor);
  Value isZero = s.compare(Predicate::eq, quotient, s.constant(0));
  exact = s.select(isZero, s.make<math::CopySignOp>(s.constant(0), s.div(x, y)), exact);
  Value byZero = s.compare(Predicate::eq, y, s.constant(0));
  return s.select(byZero, s.div(x, y), exact);
}

/// x to an integer power, by squaring. Negative powers are 0 but for bases 1 and -1.
Value integerPow(const ScalarBuilder &s, Value base, Value exponent) {
  Value one = s.constantInt(1), zero = s.constantInt(0);
  auto loop = scf::WhileOp::create(
      s.builder, s.loc, TypeRange{s.compute(), s.compute(), s.compute()},
      ValueRange{one, base, exponent},
      [&](OpBuilder &b, Location loc, ValueRange state) {
        Value more = ScalarBuilder(b, loc, s.type).compare(Predicate::gt, state[2], zero);
        scf::ConditionOp::create(b, loc, more, state);
      },
      [&](OpBuilder &b, Location loc, ValueRange state) {
        ScalarBuilder inner(b, loc, s.type);
        Value odd = inner.compare(Predicate::ne, inner.make<arith::AndIOp>(state[2], one), zero);
        Value product = inner.select(odd, inner.mul(state[0], state[1]), state[0]);
        Value square = inner.mul(state[1], state[1]);
        Value rest = inner.make<arith::ShRUIOp>(state[2], one);
        scf::YieldOp::create(b, loc, ValueRange{product, square, rest});
      });
  Value power = loop.getResult(0);
  if (s.isUnsigned())
    return power;
  Value minusOne = s.constantInt(-1);
  Value isOne = s.compare(Predicate::eq, base, one);
  Value isMinusOne = s.compare(Predicate::eq, base, minusOne);
  Value odd = s.compare(Predicate::ne, s.make<arith::AndIOp>(exponent, one), zero);
  Value ofMinusOne = s.select(odd, minusOne, one);
  Value inverse = s.select(isOne, one, s.select(isMinusOne, ofMinusOne, zero));
  return s.select(s.compare(Predicate::lt, exponent, zero), inverse, power);
}

/// The exponent if it is one constant.
std::optional<double> constantExponent(Operation *op) {
  DenseElementsAttr value;
  if (!matchPattern(cast<aten::PowOp>(op).getExponent(), m_Constant(&value)) || !value.isSplat())
    return std::nullopt;
  if (isa<FloatType>(value.getElementType()))
    return value.getSplatValue<APFloat>().convertToDouble();
  if (value.getElementType().isInteger(1))
    return value.getSplatValue<bool>();
  APInt integer = value.getSplatValue<APInt>();
  return value.getElementType().isUnsignedInteger() ? static_cast<double>(integer.getZExtValue())
                                                    : static_cast<double>(integer.getSExtValue());
}

/// The exponents for which PyTorch has shorter ways too.
Value pow(Operation *op, const ScalarBuilder &s, Args args) {
  Value x = args[0];
  if (std::optional<double> exponent = constantExponent(op)) {
    double e = *exponent;
    if (e == 1)
      return x;
    if (e == 2)
      return s.mul(x, x);
    if (e == 3)
      return s.mul(s.mul(x, x), x);
    if (s.isFloat()) {
      if (e == 0)
        return s.constant(1);
      // (-inf)^0.5 is inf, and a NaN as a root: PyTorch has the one for f16, the other for the
      // rest.
      if (e == 0.5 && !s.type.isF16())
        return s.make<math::SqrtOp>(x);
      if (e == -0.5 && !s.type.isF16())
        return s.div(s.constant(1), s.make<math::SqrtOp>(x));
      if (e == -1)
        return s.div(s.constant(1), x);
      if (e == -2)
        return s.div(s.constant(1), s.mul(x, x));
    }
  }
  if (s.isBool()) // x or not exponent
    return s.make<arith::OrIOp>(x, s.make<arith::XOrIOp>(args[1], s.constantInt(1)));
  if (!s.isFloat())
    return integerPow(s, x, args[1]);
  return s.make<math::PowFOp>(x, args[1]);
}

Value maximum(Operation *, const ScalarBuilder &s, Args args) { return s.max(args[0], args[1]); }
Value minimum(Operation *, const ScalarBuilder &s, Args args) { return s.min(args[0], args[1]); }
Value fmod(Operation *, const ScalarBuilder &s, Args args) { return s.remainder(args[0], args[1]); }
Value remainder(Operation *, const ScalarBuilder &s, Args args) {
  return pythonRemainder(s, args[0], args[1]);
}
Value atan2(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<math::Atan2Op>(args[0], args[1]);
}

template <typename ArithOp> Value bitwise(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<ArithOp>(args[0], args[1]);
}
template <typename ArithOp> Value logical(Operation *, const ScalarBuilder &s, Args args) {
  return s.make<ArithOp>(s.isNonZero(args[0]), s.isNonZero(args[1]));
}
template <ScalarBuilder::Predicate predicate>
Value compare(Operation *, const ScalarBuilder &s, Args args) {
  return s.compare(predicate, args[0], args[1]);
}

Value where(Operation *op, const ScalarBuilder &s, Args args) {
  return s.select(args[0], s.convert(args[1], aten::elementTypeOf(op->getOperand(1))),
                  s.convert(args[2], aten::elementTypeOf(op->getOperand(2))));
}
Value maskedFill(Operation *op, const ScalarBuilder &s, Args args) {
  return s.select(args[1], s.convert(args[2], aten::elementTypeOf(op->getOperand(2))), args[0]);
}
Value clamp(Operation *op, const ScalarBuilder &s, Args args) {
  auto clamp = cast<aten::ClampOp>(op);
  Value result = args[0];
  if (clamp.getMin())
    result = s.max(result, args[1]);
  if (clamp.getMax())
    result = s.min(result, args.back());
  return result;
}
Value addcmul(Operation *op, const ScalarBuilder &s, Args args) {
  double value = cast<aten::AddcmulOp>(op).getValue().convertToDouble();
  return s.add(args[0], s.mul(s.mul(s.constant(value), args[1]), args[2]));
}
Value addcdiv(Operation *op, const ScalarBuilder &s, Args args) {
  double value = cast<aten::AddcdivOp>(op).getValue().convertToDouble();
  return s.add(args[0], s.div(s.mul(s.constant(value), args[1]), args[2]));
}
Value lerp(Operation *, const ScalarBuilder &s, Args args) {
  // From the nearer end, as PyTorch, so that weight 1 gives exactly `end`.
  Value difference = s.sub(args[1], args[0]);
  Value weight = args[2];
  Value fromStart = s.add(args[0], s.mul(weight, difference));
  Value fromEnd = s.sub(args[1], s.mul(difference, s.sub(s.constant(1), weight)));
  Value small = s.compare(Predicate::lt, s.make<math::AbsFOp>(weight), s.constant(0.5));
  return s.select(small, fromStart, fromEnd);
}

} // namespace

void addBinaryRules(ElementwiseTable &table) {
  using namespace aten;
  table.add<AddOp>(Operands::Result, add);
  table.add<SubOp>(Operands::Result, sub);
  table.add<MulOp>(Operands::Result, mul);
  table.add<DivOp>(Operands::Result, div);
  table.add<PowOp>(Operands::Result, pow);
  table.add<MaximumOp>(Operands::Result, maximum);
  table.add<MinimumOp>(Operands::Result, minimum);
  table.add<FmodOp>(Operands::Result, fmod);
  table.add<RemainderOp>(Operands::Result, remainder);
  table.add<Atan2Op>(Operands::Result, atan2);
  table.add<BitwiseAndOp>(Operands::Result, bitwise<arith::AndIOp>);
  table.add<BitwiseOrOp>(Operands::Result, bitwise<arith::OrIOp>);
  table.add<BitwiseXorOp>(Operands::Result, bitwise<arith::XOrIOp>);
  table.add<LogicalAndOp>(Operands::Promoted, logical<arith::AndIOp>);
  table.add<LogicalOrOp>(Operands::Promoted, logical<arith::OrIOp>);
  table.add<LogicalXorOp>(Operands::Promoted, logical<arith::XOrIOp>);
  table.add<EqOp>(Operands::Promoted, compare<Predicate::eq>);
  table.add<NeOp>(Operands::Promoted, compare<Predicate::ne>);
  table.add<LtOp>(Operands::Promoted, compare<Predicate::lt>);
  table.add<LeOp>(Operands::Promoted, compare<Predicate::le>);
  table.add<GtOp>(Operands::Promoted, compare<Predicate::gt>);
  table.add<GeOp>(Operands::Promoted, compare<Predicate::ge>);
  table.add<WhereOp>(Operands::Own, where);
  table.add<MaskedFillOp>(Operands::Own, maskedFill);
  table.add<ClampOp>(Operands::Result, clamp);
  table.add<AddcmulOp>(Operands::Result, addcmul);
  table.add<AddcdivOp>(Operands::Result, addcdiv);
  table.add<LerpOp>(Operands::Result, lerp);
}

ElementwiseTable::ElementwiseTable() {
  addUnaryRules(*this);
  addErfinvRule(*this);
  addActivationRules(*this);
  addBinaryRules(*this);
  addRandomRules(*this);
}

const ElementwiseRule *ElementwiseTable::find(Operation *op) {
  static const ElementwiseTable table;
  auto it = table.rules.find(op->getName().getTypeID());
  return it == table.rules.end() ? nullptr : &it->second;
}

} // namespace shardc
