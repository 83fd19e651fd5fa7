// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/KnownNumbers.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/TypePromotion.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace shardc::aten {
namespace {

/// Beyond, not every integer is a double.
constexpr double kLargestInteger = 9007199254740992.0;

double roundTo(const llvm::fltSemantics &semantics, double number) {
  APFloat value(number);
  bool isInexact = false;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &isInexact);
  return value.convertToDouble();
}

bool settleFloats(FloatType type, MutableArrayRef<double> numbers) {
  if (type.isF64())
    return true;
  if (type.isF32()) {
    for (double &x : numbers)
      x = static_cast<float>(x);
    return true;
  }
  // Masks repeat few numbers.
  double last = 0, rounded = 0;
  for (double &x : numbers) {
    if (x != last && !std::isnan(x)) {
      last = x;
      rounded = roundTo(type.getFloatSemantics(), x);
    }
    if (!std::isnan(x))
      x = x == 0 ? x : rounded;
  }
  return true;
}

/// In what type an op computes: that of its result, or what its operands are promoted to.
Type computeTypeOf(Operation *op) {
  if (!isa<EqOp, NeOp, LtOp, LeOp, GtOp, GeOp>(op))
    return elementTypeOf(op->getResult(0));
  return resultElementType({typeOf(op->getOperand(0)), typeOf(op->getOperand(1))});
}

template <typename F> Numbers map(Numbers &x, F f) {
  for (double &element : x)
    element = f(element);
  return std::move(x);
}
template <typename F> Numbers map(Numbers &x, const Numbers &y, F f) {
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = f(x[i], y[i]);
  return std::move(x);
}

double remainder(double x, double y) {
  double rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

double larger(double x, double y) { return std::isnan(x) || x > y ? x : y; }
double smaller(double x, double y) { return std::isnan(x) || x < y ? x : y; }

/// Whether integers are divided by one that may be 0, which PyTorch refuses.
bool dividesByZero(Operation *op, ArrayRef<double> divisors) {
  return !isa<FloatType>(elementTypeOf(op->getResult(0))) && llvm::is_contained(divisors, 0.0);
}

/// What a sum or difference multiplies its second operand with; nothing where the product may be
/// rounded.
std::optional<double> factorOf(Operation *op) {
  double alpha = isa<AddOp>(op) ? cast<AddOp>(op).getAlpha().convertToDouble()
                                : -cast<SubOp>(op).getAlpha().convertToDouble();
  if (isa<FloatType>(elementTypeOf(op->getResult(0))) && std::abs(alpha) != 1)
    return std::nullopt;
  return alpha;
}

std::optional<Numbers> computeAny(Operation *op, MutableArrayRef<Numbers> o) {
  using Result = std::optional<Numbers>;
  bool isBool = elementTypeOf(op->getResult(0)).isInteger(1);
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<CloneOp, AliasOp, ToCopyOp>([&](Operation *) -> Result {
        Type from = elementTypeOf(op->getOperand(0));
        if (isa<FloatType>(from) && !isa<FloatType>(elementTypeOf(op->getResult(0))) && !isBool)
          return map(o[0], [](double x) { return std::trunc(x); });
        return std::move(o[0]);
      })
      .Case([&](NegOp) { return map(o[0], [](double x) { return -x; }); })
      .Case([&](AbsOp) { return map(o[0], [](double x) { return std::abs(x); }); })
      .Case([&](FloorOp) { return map(o[0], [](double x) { return std::floor(x); }); })
      .Case([&](CeilOp) { return map(o[0], [](double x) { return std::ceil(x); }); })
      .Case([&](TruncOp) { return map(o[0], [](double x) { return std::trunc(x); }); })
      .Case([&](SignOp) {
        return map(o[0], [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; });
      })
      .Case([&](ReluOp) { return map(o[0], [](double x) { return larger(x, 0); }); })
      .Case<LogicalNotOp, BitwiseNotOp>([&](Operation *) -> Result {
        if (!isBool)
          return std::nullopt;
        return map(o[0], [](double x) { return x == 0 ? 1.0 : 0.0; });
      })
      .Case<AddOp, SubOp>([&](Operation *) -> Result {
        std::optional<double> factor = factorOf(op);
        if (!factor)
          return std::nullopt;
        return map(o[0], o[1], [=](double x, double y) { return x + *factor * y; });
      })
      .Case([&](MulOp) { return map(o[0], o[1], [](double x, double y) { return x * y; }); })
      .Case([&](DivOp div) -> Result {
        std::optional<StringRef> mode = div.getRoundingMode();
        if (dividesByZero(op, o[1]))
          return std::nullopt;
        if (!mode)
          return map(o[0], o[1], [](double x, double y) { return x / y; });
        // Of floats, a quotient that is rounded first may be another integer.
        if (isa<FloatType>(elementTypeOf(op->getResult(0))))
          return std::nullopt;
        if (*mode == "floor")
          return map(o[0], o[1], [](double x, double y) { return (x - remainder(x, y)) / y; });
        return map(o[0], o[1], [](double x, double y) { return (x - std::fmod(x, y)) / y; });
      })
      .Case<RemainderOp, FmodOp>([&](Operation *) -> Result {
        if (dividesByZero(op, o[1]))
          return std::nullopt;
        if (isa<RemainderOp>(op))
          return map(o[0], o[1], remainder);
        return map(o[0], o[1], [](double x, double y) { return std::fmod(x, y); });
      })
      .Case([&](MaximumOp) { return map(o[0], o[1], larger); })
      .Case([&](MinimumOp) { return map(o[0], o[1], smaller); })
      .Case([&](ClampOp clamp) -> Result {
        size_t next = 1;
        if (clamp.getMin())
          map(o[0], o[next++], larger).swap(o[0]);
        if (clamp.getMax())
          map(o[0], o[next], smaller).swap(o[0]);
        return std::move(o[0]);
      })
      .Case<LogicalAndOp, BitwiseAndOp, LogicalOrOp, BitwiseOrOp, LogicalXorOp, BitwiseXorOp>(
          [&](Operation *) -> Result {
            if (!isBool)
              return std::nullopt;
            if (isa<LogicalAndOp, BitwiseAndOp>(op))
              return map(o[0], o[1], [](double x, double y) { return x != 0 && y != 0; });
            if (isa<LogicalOrOp, BitwiseOrOp>(op))
              return map(o[0], o[1], [](double x, double y) { return x != 0 || y != 0; });
            return map(o[0], o[1], [](double x, double y) { return (x != 0) != (y != 0); });
          })
      .Case([&](EqOp) { return map(o[0], o[1], [](double x, double y) { return x == y; }); })
      .Case([&](NeOp) { return map(o[0], o[1], [](double x, double y) { return x != y; }); })
      .Case([&](LtOp) { return map(o[0], o[1], [](double x, double y) { return x < y; }); })
      .Case([&](LeOp) { return map(o[0], o[1], [](double x, double y) { return x <= y; }); })
      .Case([&](GtOp) { return map(o[0], o[1], [](double x, double y) { return x > y; }); })
      .Case([&](GeOp) { return map(o[0], o[1], [](double x, double y) { return x >= y; }); })
      .Case<WhereOp, MaskedFillOp>([&](Operation *) -> Result {
        size_t condition = isa<WhereOp>(op) ? 0 : 1, yes = isa<WhereOp>(op) ? 1 : 2,
               no = isa<WhereOp>(op) ? 2 : 0;
        for (size_t i = 0; i < o[no].size(); ++i)
          if (o[condition][i] != 0)
            o[no][i] = o[yes][i];
        return std::move(o[no]);
      })
      .Default([](Operation *) { return std::nullopt; });
}

NumberRange around(std::initializer_list<double> numbers) {
  for (double x : numbers)
    if (std::isnan(x))
      return {x, x};
  return {std::min(numbers), std::max(numbers)};
}

/// A bool that is false, true, or either.
NumberRange truth(bool canBeFalse, bool canBeTrue) {
  return {canBeFalse ? 0.0 : 1.0, canBeTrue ? 1.0 : 0.0};
}

bool holdsZero(NumberRange x) { return x.low <= 0 && x.high >= 0; }
bool isZero(NumberRange x) { return x.low == 0 && x.high == 0; }

std::optional<NumberRange> boundAny(Operation *op, ArrayRef<NumberRange> o) {
  using Result = std::optional<NumberRange>;
  bool isBool = elementTypeOf(op->getResult(0)).isInteger(1);
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<CloneOp, AliasOp, ToCopyOp>([&](Operation *) -> Result {
        Type from = elementTypeOf(op->getOperand(0));
        if (isBool)
          return truth(holdsZero(o[0]), !isZero(o[0]));
        if (isa<FloatType>(from) && !isa<FloatType>(elementTypeOf(op->getResult(0))))
          return NumberRange{std::trunc(o[0].low), std::trunc(o[0].high)};
        return o[0];
      })
      .Case([&](NegOp) { return NumberRange{-o[0].high, -o[0].low}; })
      .Case([&](AbsOp) {
        double high = std::max(std::abs(o[0].low), std::abs(o[0].high));
        double low = std::min(std::abs(o[0].low), std::abs(o[0].high));
        return NumberRange{holdsZero(o[0]) ? 0.0 : low, high};
      })
      .Case<LogicalNotOp, BitwiseNotOp>([&](Operation *) -> Result {
        if (!isBool)
          return std::nullopt;
        return truth(!isZero(o[0]), holdsZero(o[0]));
      })
      .Case<AddOp, SubOp>([&](Operation *) -> Result {
        if (isBool)
          return std::nullopt;
        std::optional<double> factor = factorOf(op);
        if (!factor)
          return std::nullopt;
        NumberRange y = around({*factor * o[1].low, *factor * o[1].high});
        return NumberRange{o[0].low + y.low, o[0].high + y.high};
      })
      .Case([&](MulOp) {
        return around({o[0].low * o[1].low, o[0].low * o[1].high, o[0].high * o[1].low,
                       o[0].high * o[1].high});
      })
      .Case([&](DivOp div) -> Result {
        double divisor = o[1].low;
        if (!o[1].isOne() || divisor <= 0)
          return std::nullopt;
        NumberRange quotient{o[0].low / divisor, o[0].high / divisor};
        std::optional<StringRef> mode = div.getRoundingMode();
        if (!mode)
          return quotient;
        if (*mode != "floor" || isa<FloatType>(elementTypeOf(op->getResult(0))))
          return std::nullopt;
        return NumberRange{std::floor(quotient.low), std::floor(quotient.high)};
      })
      .Case([&](RemainderOp) -> Result {
        double divisor = o[1].low;
        if (!o[1].isOne() || divisor <= 0 || isa<FloatType>(elementTypeOf(op->getResult(0))))
          return std::nullopt;
        double turns = std::floor(o[0].low / divisor);
        if (turns != std::floor(o[0].high / divisor))
          return NumberRange{0, divisor - 1};
        return NumberRange{o[0].low - turns * divisor, o[0].high - turns * divisor};
      })
      .Case([&](MaximumOp) {
        return NumberRange{std::max(o[0].low, o[1].low), std::max(o[0].high, o[1].high)};
      })
      .Case([&](MinimumOp) {
        return NumberRange{std::min(o[0].low, o[1].low), std::min(o[0].high, o[1].high)};
      })
      .Case([&](ClampOp clamp) {
        NumberRange x = o[0];
        size_t next = 1;
        if (clamp.getMin()) {
          x = {std::max(x.low, o[next].low), std::max(x.high, o[next].high)};
          ++next;
        }
        if (clamp.getMax())
          x = {std::min(x.low, o[next].low), std::min(x.high, o[next].high)};
        return x;
      })
      .Case<LogicalAndOp, BitwiseAndOp>([&](Operation *) -> Result {
        if (!isBool)
          return std::nullopt;
        return truth(holdsZero(o[0]) || holdsZero(o[1]), !isZero(o[0]) && !isZero(o[1]));
      })
      .Case<LogicalOrOp, BitwiseOrOp>([&](Operation *) -> Result {
        if (!isBool)
          return std::nullopt;
        return truth(holdsZero(o[0]) && holdsZero(o[1]), !isZero(o[0]) || !isZero(o[1]));
      })
      .Case([&](LtOp) { return truth(o[0].high >= o[1].low, o[0].low < o[1].high); })
      .Case([&](LeOp) { return truth(o[0].high > o[1].low, o[0].low <= o[1].high); })
      .Case([&](GtOp) { return truth(o[0].low <= o[1].high, o[0].high > o[1].low); })
      .Case([&](GeOp) { return truth(o[0].low < o[1].high, o[0].high >= o[1].low); })
      .Case<EqOp, NeOp>([&](Operation *) {
        bool canBeEqual = o[0].low <= o[1].high && o[1].low <= o[0].high;
        bool canDiffer = !o[0].isOne() || !o[1].isOne() || o[0].low != o[1].low;
        return isa<EqOp>(op) ? truth(canDiffer, canBeEqual) : truth(canBeEqual, canDiffer);
      })
      .Case<WhereOp, MaskedFillOp>([&](Operation *) {
        NumberRange condition = o[isa<WhereOp>(op) ? 0 : 1];
        NumberRange yes = o[isa<WhereOp>(op) ? 1 : 2], no = o[isa<WhereOp>(op) ? 2 : 0];
        if (!holdsZero(condition))
          return yes;
        if (isZero(condition))
          return no;
        return around({yes.low, yes.high, no.low, no.high});
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace

bool isKnownElementwise(Operation *op) {
  return isa<CloneOp, AliasOp, ToCopyOp, NegOp, AbsOp, FloorOp, CeilOp, TruncOp, SignOp, ReluOp,
             LogicalNotOp, BitwiseNotOp, AddOp, SubOp, MulOp, DivOp, RemainderOp, FmodOp, MaximumOp,
             MinimumOp, ClampOp, LogicalAndOp, BitwiseAndOp, LogicalOrOp, BitwiseOrOp, LogicalXorOp,
             BitwiseXorOp, EqOp, NeOp, LtOp, LeOp, GtOp, GeOp, WhereOp, MaskedFillOp>(op);
}

bool settle(Type type, MutableArrayRef<double> numbers) {
  if (auto ofFloats = dyn_cast<FloatType>(type))
    return settleFloats(ofFloats, numbers);
  if (type.isInteger(1)) {
    for (double &x : numbers)
      x = x != 0;
    return true;
  }
  auto ofIntegers = dyn_cast<IntegerType>(type);
  if (!ofIntegers)
    return false;
  // Integers of fewer bits would wrap.
  bool isUnsigned = ofIntegers.isUnsigned();
  unsigned bits = ofIntegers.getWidth();
  double high = bits > 53 ? kLargestInteger : std::ldexp(1.0, bits - !isUnsigned) - 1;
  double low = isUnsigned ? 0 : bits > 53 ? -kLargestInteger : -high - 1;
  return llvm::all_of(numbers, [=](double x) { return x >= low && x <= high; });
}

std::optional<Numbers> compute(Operation *op, MutableArrayRef<Numbers> operands) {
  // An op promotes its operands first.
  if (Type type = computeTypeOf(op); isa_and_nonnull<FloatType>(type) && !isa<ToCopyOp>(op))
    for (auto [operand, numbers] : llvm::zip_equal(op->getOperands(), operands))
      if (Type own = elementTypeOf(operand);
          own != type && !own.isInteger(1) && !settle(type, numbers))
        return std::nullopt;
  std::optional<Numbers> result = computeAny(op, operands);
  if (!result || !settle(elementTypeOf(op->getResult(0)), *result))
    return std::nullopt;
  return result;
}

std::optional<NumberRange> bound(Operation *op, ArrayRef<NumberRange> operands) {
  std::optional<NumberRange> result = boundAny(op, operands);
  if (!result || std::isnan(result->low) || std::isnan(result->high))
    return std::nullopt;
  // Rounding keeps the order of numbers. What is compared is promoted before, and may become equal.
  Type type = computeTypeOf(op);
  if (elementTypeOf(op->getResult(0)).isInteger(1))
    return isa_and_nonnull<FloatType>(type) ? std::nullopt : result;
  double ends[] = {result->low, result->high};
  if (!settle(type, ends))
    return std::nullopt;
  return NumberRange{ends[0], ends[1]};
}

} // namespace shardc::aten
