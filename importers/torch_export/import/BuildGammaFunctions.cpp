// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The logarithm of the gamma function and its derivatives, in f64: Stirling's series (DLMF 5.11.1,
// 5.11.2 and 5.15.8) at 10 or more, reached by recurrence (5.5.1, 5.5.2, 5.15.5) from below and by
// reflection (5.5.3, 5.5.4, 5.15.6) from negative numbers. Derivatives are those of the formulas.
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

Expr power(Expr x, int64_t exponent) {
  if (exponent == 1)
    return x;
  Expr half = power(x, exponent / 2);
  return exponent % 2 == 0 ? half * half : half * half * x;
}

double factorial(double n) { return std::tgamma(n + 1); }

/// The n-th derivative of digamma for n >= 1, without its sign.
Expr polygammaOfPositive(Expr x, int64_t n) {
  // Terms of the series grow with n.
  int64_t steps = kSteps + n;
  Expr isLarge = ge(x, static_cast<double>(steps));
  Expr y = where(isLarge, x, x + static_cast<double>(steps));
  Expr small = where(isLarge, 1, x);
  Expr below = power(1.0 / small, n + 1);
  for (int64_t k = 1; k < steps; ++k)
    below = below + power(1.0 / (small + static_cast<double>(k)), n + 1);
  double order = static_cast<double>(n);
  Expr rest = series(y, [&](double k) { return factorial(order + k - 1) / factorial(k); });
  Expr inverse = 1.0 / y;
  Expr above = rest + inverse * (factorial(order) / 2) + factorial(order - 1);
  return power(inverse, n) * above + where(isLarge, 0, below * factorial(order));
}

/// The n-th derivative of pi cot(pi x) as a polynomial in the cotangent: each derivative of a power
/// of it has the factor -pi (1 + cot(pi x)^2). No term cancels another, every other one is 0.
Expr derivativeOfCotangent(Expr cotangent, int64_t n) {
  SmallVector<double> coefficients = {0, std::numbers::pi};
  for (int64_t i = 0; i < n; ++i) {
    SmallVector<double> next(coefficients.size() + 1, 0);
    for (size_t k = 1; k < coefficients.size(); ++k) {
      double slope = -std::numbers::pi * static_cast<double>(k) * coefficients[k];
      next[k - 1] += slope;
      next[k + 1] += slope;
    }
    coefficients = std::move(next);
  }
  Expr total = cotangent.number(coefficients.pop_back_val());
  while (!coefficients.empty()) {
    total = total * cotangent;
    if (double coefficient = coefficients.pop_back_val())
      total = total + coefficient;
  }
  return total;
}

/// pi x less a multiple of pi that keeps the sign of the sine or changes it: exact near integers.
Expr angle(Formula &f, Expr x) {
  Expr rounded = f.op("aten.round", {{"self", {x.value}}});
  return (x - rounded) * std::numbers::pi;
}

Expr logGamma(Formula &f, Expr x) {
  Expr isNegative = lt(x, 0);
  Expr isInfinite = f.of(f.emit.unary<aten::IsinfOp>(x.value));
  Expr finite = where(isInfinite, 1, x);
  Expr positive = logGammaOfPositive(where(isNegative, 1.0 - finite, finite));
  Expr sine = abs(sin(angle(f, where(isNegative, finite, 0.5))));
  Expr reflected = std::log(std::numbers::pi) - log(sine) - positive;
  return where(isInfinite, kInfinity, where(isNegative, reflected, positive));
}

} // namespace

FailureOr<Results> buildLogGamma(Call &call) { return inDouble(call, logGamma); }

// Of p dims: p (p - 1) / 4 log(pi) and the sum of the logarithms at x - j / 2, for j below p.
FailureOr<Results> buildMultiGamma(Call &call) {
  return inDouble(call, [](Formula &f, Expr x) {
    int64_t p = f.integer("p");
    double dims = static_cast<double>(p);
    Expr total = x.number(dims * (dims - 1) / 4 * std::log(std::numbers::pi));
    for (int64_t j = 0; j < p; ++j)
      total = total + logGamma(f, x - static_cast<double>(j) / 2);
    return total;
  });
}

FailureOr<Results> buildDigamma(Call &call) {
  return inDouble(call, [](Formula &f, Expr x) {
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

// Derivatives of digamma. At poles they are infinite, as they are in PyTorch but for rounding.
FailureOr<Results> buildPolygamma(Call &call) {
  FailureOr<std::optional<int64_t>> order = call.integer("n");
  if (failed(order))
    return failure();
  int64_t n = order->value_or(0);
  if (n == 0)
    return buildDigamma(call);
  // At negative numbers, the two parts of higher ones are far larger than their difference.
  constexpr int64_t kMost = 8;
  if (n < 0 || n > kMost)
    return call.error() << "derivatives of digamma are supported up to the one of order " << kMost;
  return inDouble(call, [&](Formula &f, Expr x) {
    Expr isNegative = lt(x, 0);
    Expr positive = polygammaOfPositive(where(isNegative, 1.0 - x, x), n);
    Expr at = angle(f, where(isNegative, x, 0.25));
    // Its derivative is a number, or infinity, where this is infinite.
    Expr cotangent = 1.0 / f.of(f.emit.unary<aten::TanOp>(at.value));
    Expr reflected = -positive - derivativeOfCotangent(cotangent, n);
    return where(isNegative, reflected, n % 2 == 0 ? -positive : positive);
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
