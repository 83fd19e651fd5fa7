// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions of single elements that are formulas of others. Derivatives follow from the formulas,
// which have none that is no number where PyTorch has one.
#include "importers/torch_export/import/Formula.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace shardc::torch_export {
namespace {

Expr minimum(Expr x, Expr y) { return x.with(x.emit->binary<aten::MinimumOp>(x.value, y.value)); }
Expr trunc(Expr x) { return x.with(x.emit->unary<aten::TruncOp>(x.value)); }

bool isFloat(Expr x) { return isa<FloatType>(x.elementType()); }
/// No number less itself is 0 but a finite one.
Expr isFinite(Expr x) { return eq(x - x, 0); }
/// Whether the sign is negative, that of 0 too.
Expr hasSign(Expr x) {
  if (!isFloat(x))
    return lt(x, 0);
  return logicalOr(lt(x, 0), logicalAnd(eq(x, 0), lt(1.0 / where(eq(x, 0), x, 1), 0)));
}

/// A function of the argument `self` alone.
template <typename Function> FailureOr<Results> ofSelf(Call &call, Function function) {
  Formula f(call);
  Expr self = f.floats("self");
  if (f.failed())
    return failure();
  return f.result(function(f, self));
}

/// Of two, of which one may be a number.
template <typename Function>
FailureOr<Results> ofTwo(Call &call, StringRef first, StringRef second, Function function) {
  Formula f(call);
  Expr x = f.floats(first), y = f.floats(second);
  if (f.failed())
    return failure();
  return f.result(function(f, x, y));
}

/// Of elements as they are.
template <typename Function> FailureOr<Results> ofElements(Call &call, Function function) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  return f.result(function(f, self));
}

Expr activation(Formula &f, Expr x, StringRef name, ArrayRef<std::pair<StringRef, double>> with) {
  SmallVector<NamedAttribute> attributes;
  for (auto [attribute, value] : with)
    attributes.push_back(f.realAttr(attribute, value));
  return f.op(name, {{"self", {x.value}}}, attributes);
}

/// log(exp(x) + exp(y)) in another base: the larger one and the logarithm of 1 and the ratio. An
/// infinite larger one is the result.
Expr logOfSum(Formula &f, Expr x, Expr y, double base) {
  Expr most = maximum(x, y), least = minimum(x, y);
  Expr isInfinite = f.of(f.emit.unary<aten::IsinfOp>(most.value));
  Expr difference = where(isInfinite, 0, least - most) * base;
  // Both have half of the derivative where they are equal.
  return where(isInfinite, most, most + log1p(exp(difference)) / base);
}

} // namespace

FailureOr<Results> buildRelu6(Call &call) {
  return ofElements(call, [](Formula &f, Expr x) {
    return activation(f, x, "aten.hardtanh", {{"min_val", 0}, {"max_val", 6}});
  });
}

FailureOr<Results> buildSelu(Call &call) {
  return ofElements(call, [](Formula &f, Expr x) {
    return activation(f, x, "aten.elu",
                      {{"alpha", 1.6732632423543772848170429916717},
                       {"scale", 1.0507009873554804934193349852946}});
  });
}

FailureOr<Results> buildCelu(Call &call) {
  return ofElements(call, [](Formula &f, Expr x) {
    double alpha = f.real("alpha", 1);
    return activation(f, x, "aten.elu", {{"alpha", alpha}, {"input_scale", 1 / alpha}});
  });
}

// In training the slopes are random.
FailureOr<Results> buildRandomizedRelu(Call &call) {
  FailureOr<bool> isTraining = call.boolean("training");
  if (failed(isTraining))
    return failure();
  if (*isTraining)
    return call.error() << "'rrelu' in training is not supported";
  FailureOr<Results> results = ofElements(call, [](Formula &f, Expr x) {
    double slope = (f.real("lower", 1.0 / 8) + f.real("upper", 1.0 / 3)) / 2;
    return activation(f, x, "aten.leaky_relu", {{"negative_slope", slope}});
  });
  if (succeeded(results))
    results->resize(call.results.size()); // and the slopes, for PyTorch's own backward
  return results;
}

// One weight, or one for each channel.
FailureOr<Results> buildPrelu(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self"), weight = f.tensor("weight");
  if (f.failed())
    return failure();
  if (weight.rank() == 1 && call.schema.overload == "prelu.default") {
    SmallVector<OpFoldResult> sizes(self.rank(), f.one());
    if (self.rank() > 1)
      sizes[1] = f.sizes(weight).front();
    else if (self.rank() == 1)
      sizes[0] = f.sizes(weight).front();
    weight = view(weight, sizes);
  }
  return f.result(where(gt(self, 0), self, weight * self));
}

FailureOr<Results> buildSquare(Call &call) {
  return ofElements(call, [](Formula &, Expr x) { return x * x; });
}

// min(x, 0) - log(1 + exp(-|x|))
FailureOr<Results> buildLogSigmoid(Call &call) {
  FailureOr<Results> results = ofSelf(call, [](Formula &f, Expr x) {
    return -activation(f, -x, "aten.softplus", {{"threshold", 40}});
  });
  if (succeeded(results))
    results->resize(call.results.size()); // and a buffer for PyTorch's own backward
  return results;
}

FailureOr<Results> buildIsFinite(Call &call) {
  return ofElements(call, [](Formula &, Expr x) { return isFloat(x) ? isFinite(x) : eq(x, x); });
}

FailureOr<Results> buildInfiniteSign(Call &call) {
  bool isPositive = call.schema.overload == "isposinf.default";
  return ofElements(call, [&](Formula &, Expr x) {
    return isFloat(x) ? eq(x, isPositive ? kInfinity : -kInfinity) : lt(x, x);
  });
}

FailureOr<Results> buildIsClose(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  double relative = f.real("rtol"), absolute = f.real("atol");
  bool equalNaN = f.flag("equal_nan");
  if (f.failed())
    return failure();
  Expr same = eq(x, y);
  if (isFloat(x) && equalNaN)
    same = logicalOr(same, logicalAnd(isNaN(x), isNaN(y)));
  if (relative == 0 && absolute == 0)
    return f.result(same);
  if (!isFloat(x)) {
    x = cast(x, call.builder.getF32Type());
    y = cast(y, call.builder.getF32Type());
  }
  Expr difference = abs(x - y), bound = abs(y * relative) + absolute;
  return f.result(logicalOr(same, logicalAnd(isFinite(difference), le(difference, bound))));
}

// In f64, whatever the operands are.
FailureOr<Results> buildFloatPower(Call &call) {
  return ofTwo(call, "self", "exponent", [](Formula &, Expr x, Expr y) { return pow(x, y); });
}

namespace {
/// x f(y), which is 0 where x is, and NaN where y is. There the derivative by x is f(y) where that
/// is finite, which it is above `least`, else 0.
template <typename Log> FailureOr<Results> timesLog(Call &call, double least, Log log) {
  return ofTwo(call, "self", "other", [&](Formula &, Expr x, Expr y) {
    Expr isNone = logicalAnd(eq(x, 0), logicalOr(le(y, least), eq(y, kInfinity)));
    return where(isNone, x * 0, x * log(where(isNone, 1, y)));
  });
}
} // namespace

FailureOr<Results> buildTimesLog(Call &call) {
  return timesLog(call, 0, [](Expr y) { return log(y); });
}
FailureOr<Results> buildTimesLog1p(Call &call) {
  return timesLog(call, -1, [](Expr y) { return log1p(y); });
}

FailureOr<Results> buildLogit(Call &call) {
  return ofSelf(call, [&](Formula &f, Expr x) {
    if (!call.isNone("eps")) {
      double eps = f.real("eps");
      x = f.op("aten.clamp", {{"self", {x.value}},
                              {"min", {x.number(eps).value}},
                              {"max", {x.number(1 - eps).value}}});
    }
    return log(x / (1.0 - x));
  });
}

FailureOr<Results> buildSinc(Call &call) {
  return ofSelf(call, [](Formula &, Expr x) {
    Expr product = where(eq(x, 0), 1, x) * std::numbers::pi;
    return where(eq(x, 0), x * 0 + 1, sin(product) / product);
  });
}

FailureOr<Results> buildNormalDistribution(Call &call) {
  return ofSelf(call,
                [](Formula &, Expr x) { return (erf(x * (1 / std::numbers::sqrt2)) + 1) * 0.5; });
}

FailureOr<Results> buildLogAddExp(Call &call) {
  double base = call.schema.overload == "logaddexp2.default" ? std::numbers::ln2 : 1;
  return ofTwo(call, "self", "other",
               [&](Formula &f, Expr x, Expr y) { return logOfSum(f, x, y, base); });
}

FailureOr<Results> buildHypotenuse(Call &call) {
  return ofTwo(call, "self", "other", [](Formula &f, Expr x, Expr y) {
    Expr most = maximum(abs(x), abs(y));
    Expr isPlain = logicalAnd(gt(most, 0), lt(most, kInfinity));
    Expr size = f.detached(where(isPlain, most, 1));
    Expr u = x / size, v = y / size;
    return where(isPlain, size * sqrt(where(isPlain, u * u + v * v, 1)), most);
  });
}

FailureOr<Results> buildCopySign(Call &call) {
  return ofTwo(call, "self", "other", [](Formula &f, Expr x, Expr y) {
    Expr differs = f.of(f.emit.binary<aten::NeOp>(hasSign(x).value, hasSign(y).value));
    Expr result = where(differs, -x, x);
    return where(eq(x, 0), f.detached(result), result);
  });
}

FailureOr<Results> buildSignBit(Call &call) {
  return ofElements(call, [](Formula &, Expr x) { return hasSign(x); });
}

FailureOr<Results> buildFraction(Call &call) {
  return ofElements(call, [](Formula &, Expr x) { return x - trunc(x); });
}

FailureOr<Results> buildAngle(Call &call) {
  double factor =
      call.schema.overload == "deg2rad.default" ? std::numbers::pi / 180 : 180 / std::numbers::pi;
  return ofSelf(call, [&](Formula &, Expr x) { return x * factor; });
}

// Pi of negative numbers. One that is no number is its own.
FailureOr<Results> buildComplexAngleOfReal(Call &call) {
  return ofSelf(call, [&](Formula &, Expr x) {
    return where(isNaN(x), x, where(lt(x, 0), x.number(std::numbers::pi), 0));
  });
}

FailureOr<Results> buildIsReal(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self");
  if (f.failed())
    return failure();
  return Results{f.emit.full(f.sizes(x), f.emit.scalar(1, call.builder.getI1Type()))};
}

FailureOr<Results> buildHeaviside(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), values = f.tensor("values");
  if (f.failed())
    return failure();
  return f.result(where(eq(x, 0), values, cast(gt(x, 0), x.elementType())));
}

FailureOr<Results> buildNumbersForNaN(Call &call) {
  return ofElements(call, [&](Formula &f, Expr x) {
    if (!isFloat(x))
      return x;
    const llvm::fltSemantics &format = cast<FloatType>(x.elementType()).getFloatSemantics();
    double most = llvm::APFloat::getLargest(format).convertToDouble();
    double none = f.real("nan", 0), high = f.real("posinf", most), low = f.real("neginf", -most);
    Expr finite = where(eq(x, kInfinity), high, where(eq(x, -kInfinity), low, x));
    return where(isNaN(x), none, finite);
  });
}

// Floats meet the bound as it was written, not one that is rounded to their type.
FailureOr<Results> buildThreshold(Call &call) {
  return ofElements(call, [](Formula &f, Expr x) {
    if (isFloat(x))
      x = cast(x, Emitter::accumulator(x.elementType()));
    return where(le(x, f.real("threshold")), f.real("value"), x);
  });
}

FailureOr<Results> buildShrink(Call &call) {
  bool isSoft = call.schema.overload == "softshrink.default";
  return ofElements(call, [&](Formula &f, Expr x) {
    double bound = f.real("lambd", 0.5);
    // PyTorch rounds the bound of hardshrink.
    if (isSoft && isFloat(x))
      x = cast(x, Emitter::accumulator(x.elementType()));
    Expr inside = logicalAnd(ge(x, -bound), le(x, bound));
    return where(inside, x * 0, isSoft ? x - sign(x) * bound : x);
  });
}

// Of equal numbers it is self, which then has the whole derivative.
FailureOr<Results> buildExtremumOfNumbers(Call &call) {
  bool isMax = call.schema.overload == "fmax.default";
  Formula f(call);
  Expr x = f.tensor("self"), y = f.tensor("other");
  if (f.failed())
    return failure();
  Expr isSelf = isMax ? ge(x, y) : le(x, y);
  if (isFloat(y))
    isSelf = logicalOr(isSelf, isNaN(y));
  return f.result(where(isSelf, x, y));
}

// sign(x) log(|x| + sqrt(x^2 + 1)), where squares do not overflow.
FailureOr<Results> buildAreaSine(Call &call) {
  return ofSelf(call, [](Formula &, Expr x) {
    Expr size = abs(x), isLarge = gt(size, 1e8), small = where(isLarge, 1, size);
    Expr ofSmall = log1p(small + square(small) / (sqrt(square(small) + 1) + 1));
    Expr ofLarge = log(where(isLarge, size, 1)) + std::numbers::ln2;
    return where(eq(x, 0), x, sign(x) * where(isLarge, ofLarge, ofSmall));
  });
}

FailureOr<Results> buildAreaCosine(Call &call) {
  return ofSelf(call, [](Formula &, Expr x) {
    Expr isLarge = gt(x, 1e8), above = where(isLarge, 1, x) - 1;
    Expr ofSmall = log1p(above + sqrt(above * 2 + square(above)));
    return where(isLarge, log(where(isLarge, x, 1)) + std::numbers::ln2, ofSmall);
  });
}

FailureOr<Results> buildAreaTangent(Call &call) {
  return ofSelf(call, [](Formula &, Expr x) {
    Expr size = abs(x);
    return where(eq(x, 0), x, sign(x) * log1p(size * 2 / (1.0 - size)) * 0.5);
  });
}

FailureOr<Results> buildTimesPower(Call &call) {
  return ofTwo(call, "self", "other",
               [](Formula &, Expr x, Expr y) { return x * pow(y.number(2), y); });
}

// Of the number with this many decimals.
FailureOr<Results> buildRoundedDecimals(Call &call) {
  return ofElements(call, [&](Formula &f, Expr x) {
    double scale = std::pow(10.0, std::abs(static_cast<double>(f.integer("decimals"))));
    auto rounded = [](Expr y) { return y.with(y.emit->unary<aten::RoundOp>(y.value)); };
    if (!isFloat(x) || scale == 1)
      return rounded(x);
    return f.integer("decimals") > 0 ? rounded(x * scale) / scale : rounded(x / scale) * scale;
  });
}

// No operand says what the element type is.
FailureOr<Results> buildWhereOfNumbers(Call &call) {
  Formula f(call);
  Type type = call.resultElementType();
  Expr condition = f.tensor("condition"), x = f.tensorOrNumber("self", type),
       y = f.tensorOrNumber("other", type);
  if (f.failed())
    return failure();
  return f.result(where(condition, x, y));
}

} // namespace shardc::torch_export
