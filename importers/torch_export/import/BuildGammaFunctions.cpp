// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The logarithm of the gamma function and its derivative, in f64: Stirling's series (DLMF 5.11.1
// and 5.11.2) at 10 or more, reached by recurrence (5.5.1, 5.5.2) from below and by reflection
// (5.5.3, 5.5.4) from negative numbers. Derivatives are those of the formulas.
#include "importers/torch_export/import/Formula.h"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;

namespace shardc::torch_export {
namespace {

constexpr int kSteps = 10;
/// Bernoulli's numbers of even index, from the second on.
constexpr std::array<double, 8> kBernoulli = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                              5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};

/// The sum over k >= 1 of c(2k) B_2k / y^2k, where B_2k are Bernoulli's numbers.
template <typename Coefficient> Expr series(Expr y, Coefficient coefficient) {
  Expr inverse = 1.0 / y, square = inverse * inverse;
  Expr total = square.number(0);
  for (size_t k = kBernoulli.size(); k > 0; --k)
    total = (total + coefficient(static_cast<double>(2 * k)) * kBernoulli[k - 1]) * square;
  return total;
}

/// Of numbers of 0 and above.
Expr logGammaOfPositive(Expr x) {
  Expr isLarge = ge(x, kSteps);
  Expr y = where(isLarge, x, x + kSteps);
  // The product overflows for large numbers, and would have a derivative that is no number.
  Expr small = where(isLarge, 1, x), product = small;
  for (int k = 1; k < kSteps; ++k)
    product = product * (small + k);
  Expr stirling = (y - 0.5) * log(y) - y + 0.5 * std::log(2 * std::numbers::pi) +
                  y * series(y, [](double n) { return 1 / (n * (n - 1)); });
  return stirling - where(isLarge, 0, log(product));
}

Expr digammaOfPositive(Expr x) {
  Expr isLarge = ge(x, kSteps);
  Expr y = where(isLarge, x, x + kSteps);
  Expr small = where(isLarge, 1, x);
  Expr below = 1.0 / small;
  for (int k = 1; k < kSteps; ++k)
    below = below + 1.0 / (small + k);
  Expr rest = series(y, [](double n) { return 1 / n; });
  return log(y) - 0.5 / y - rest - where(isLarge, 0, below);
}

/// pi x less a multiple of pi that keeps the sign of the sine or changes it: exact near integers.
Expr angle(Formula &f, Expr x) {
  Expr rounded = f.op("aten.round", {{"self", {x.value}}});
  return (x - rounded) * std::numbers::pi;
}

/// In f64, whatever the element type of the result is.
template <typename Function> FailureOr<Results> wide(Call &call, Function function) {
  Formula f(call);
  Expr self = f.tensor("self");
  if (f.failed())
    return failure();
  return f.result(function(f, cast(self, call.builder.getF64Type())));
}

} // namespace

FailureOr<Results> buildLogGamma(Call &call) {
  return wide(call, [](Formula &f, Expr x) {
    Expr isNegative = lt(x, 0);
    Expr isInfinite = f.of(f.emit.unary<aten::IsinfOp>(x.value));
    Expr finite = where(isInfinite, 1, x);
    Expr positive = logGammaOfPositive(where(isNegative, 1.0 - finite, finite));
    Expr sine = abs(sin(angle(f, where(isNegative, finite, 0.5))));
    Expr reflected = std::log(std::numbers::pi) - log(sine) - positive;
    return where(isInfinite, kInfinity, where(isNegative, reflected, positive));
  });
}

FailureOr<Results> buildDigamma(Call &call) {
  return wide(call, [](Formula &f, Expr x) {
    Expr isNegative = lt(x, 0);
    Expr isInfinite = eq(x, kInfinity);
    Expr finite = where(isInfinite, 1, x);
    Expr positive = digammaOfPositive(where(isNegative, 1.0 - finite, finite));
    Expr at = angle(f, where(isNegative, finite, 0.25));
    // It has poles at negative integers, from both sides of which it has other signs.
    Expr cotangent = where(eq(at, 0), std::numeric_limits<double>::quiet_NaN(), cos(at) / sin(at));
    Expr reflected = positive - std::numbers::pi * cotangent;
    return where(isInfinite, kInfinity, where(isNegative, reflected, positive));
  });
}

// -x log(x), 0 at 0 and minus infinity below.
FailureOr<Results> buildEntropy(Call &call) {
  Formula f(call);
  Expr x = f.floats("self");
  if (f.failed())
    return failure();
  Expr isPositive = gt(x, 0);
  Expr value = -x * log(where(isPositive, x, 1));
  Expr isNumber = eq(x, x);
  return f.result(where(logicalAnd(isNumber, le(x, 0)), where(eq(x, 0), 0, x.number(-kInfinity)),
                        where(isNumber, value, x)));
}

} // namespace shardc::torch_export
