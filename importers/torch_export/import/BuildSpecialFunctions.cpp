// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The error function's complement, the normal distribution's logarithm and quantile, and Bessel's
// modified functions, in f64. Tables are polynomials through a function at the Chebyshev points of
// its range, whose values had 40 digits; what they leave is below the rounding of f64. Derivatives
// are those of the formulas.
#include "importers/torch_export/import/Formula.h"

#include <numbers>

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// Of rising powers.
Expr polynomial(Expr x, ArrayRef<double> coefficients) {
  Expr total = x.number(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    total = total * x + coefficient;
  return total;
}

/// exp(x^2) erfc(x) is t g(t), where t = a / (x + a) goes from 1 at x = 0 to 0 at infinity; g is a
/// polynomial in t - 1/2.
constexpr double kScale = 2.5;
constexpr double kScaledComplement[] = {
    0.4216127281222872,      0.6437214795513185,    0.7262625866369536,    0.548003664787581,
    0.18151392084476628,     -0.10743096710095577,  -0.12336090939405765,  0.022487464965417755,
    0.07195583727138705,     -0.011941490429002057, -0.04612293613996149,  0.01600171086460997,
    0.029891475538273215,    -0.02214258462041687,  -0.015282961467877684, 0.02579677080292971,
    -0.00017682711428225272, -0.023816477969206957, 0.014597330888629573,  0.01556077570234734,
    -0.022518913497904837,   -0.005420751642499461, 0.019061711556024243,  0.00011634625212960024,
    -0.007646610507783432};

/// exp(x^2) erfc(x) of numbers of 0 and above.
Expr scaledComplement(Expr x) {
  Expr t = kScale / (x + kScale);
  return t * polynomial(t - 0.5, kScaledComplement);
}

/// The normal distribution's quantile is -x h(r) for small p, where x = sqrt(-2 log(p)) is what it
/// comes near to, and r = 1 / sqrt(x). h is a polynomial in r - kMiddle, for r from 0.16 (beyond
/// the smallest number of f64) to 0.69 (beyond kTail).
constexpr double kTail = 0.1, kMiddle = 0.425;
constexpr double kQuantile[] = {
    0.9121546647846054,  -0.6843851297776335, -1.771456467977036,    -1.3767022576872876,
    0.5462757275987489,  0.17917134987500694, -0.5067410812402299,   0.24844290525578444,
    0.0365323806924053,  0.5174399595627828,  -1.466690086876029,    0.5334590467459539,
    2.837355404908798,   -2.666051681264264,  -8.028470242821061,    17.067572032376134,
    7.974745435892462,   -51.10677519022369,  -0.009695602388995065, 142.97053012288558,
    -112.50822780397279, -47.686806382315574};

/// Of numbers between 0 and kTail.
Expr quantileOfTail(Expr p) {
  Expr x = sqrt(log(p) * -2);
  return -x * polynomial(rsqrt(x) - kMiddle, kQuantile);
}

/// From here on, Hankel's expansion has a term that is below the rounding of f64.
constexpr double kFar = 25;
constexpr int kPowers = 42, kHankelTerms = 20;

/// Bessel's modified function of order 0 or 1 by its power series (DLMF 10.25.2).
Expr besselNear(Expr x, int order) {
  SmallVector<double> coefficients = {order == 0 ? 1.0 : 0.5};
  for (int k = 1; k <= kPowers; ++k)
    coefficients.push_back(coefficients.back() / (k * (k + order)));
  Expr sum = polynomial(square(x * 0.5), coefficients);
  return order == 0 ? sum : x * sum;
}

/// exp(-x) times it by Hankel's expansion (DLMF 10.40.1), of kFar and above.
Expr scaledBesselFar(Expr x, int order) {
  SmallVector<double> coefficients = {1};
  for (int k = 1; k < kHankelTerms; ++k)
    coefficients.push_back(coefficients.back() * ((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k));
  return polynomial(1.0 / x, coefficients) * rsqrt(x * (2 * std::numbers::pi));
}

} // namespace

// Where 1 - erf(x) would cancel, and is not 0 yet: exp(-x^2) times what varies little.
FailureOr<Results> buildErrorComplement(Call &call) {
  return inDouble(call, [](Formula &, Expr x) {
    Expr isTail = logicalAnd(ge(x, 0.5), lt(x, 28));
    Expr tail = where(isTail, x, 1);
    return where(isTail, exp(-square(tail)) * scaledComplement(tail), 1.0 - erf(x));
  });
}

FailureOr<Results> buildScaledErrorComplement(Call &call) {
  return inDouble(call, [](Formula &, Expr x) {
    Expr isNegative = lt(x, 0);
    Expr ofSize = scaledComplement(where(isNegative, -x, x));
    return where(isNegative, exp(square(where(isNegative, x, 0))) * 2 - ofSize, ofSize);
  });
}

// The logarithm of erfc(-x / sqrt(2)) / 2; of the other side's rest for positive numbers.
FailureOr<Results> buildLogOfNormal(Call &call) {
  return inDouble(call, [](Formula &, Expr x) {
    Expr isNegative = lt(x, 0), t = x * (1 / std::numbers::sqrt2);
    // The rest of 40 is 0, and infinity would have a derivative that is no number.
    Expr size = where(isNegative, -t, where(gt(t, 40), 40, t));
    Expr half = scaledComplement(size) * 0.5;
    return where(isNegative, log(half) - square(size), log1p(-(exp(-square(size)) * half)));
  });
}

// 2p - 1 would lose the digits of a small p.
FailureOr<Results> buildNormalQuantile(Call &call) {
  return inDouble(call, [](Formula &f, Expr p) {
    Expr isUpper = gt(p, 0.5), lower = where(isUpper, 1.0 - p, p);
    Expr isEnd = le(lower, 0), isTail = lt(lower, kTail);
    // Infinite at 0, with its derivative; no number beyond, nor is that.
    Expr end = log(sqrt(where(isEnd, lower, 1)));
    Expr inside = where(isEnd, kTail, where(isTail, lower, kTail));
    Expr tail = where(isEnd, end, quantileOfTail(inside));
    Expr center = f.op("aten.erfinv", {{"self", {where(isTail, 0, p * 2 - 1).value}}});
    return where(isTail, where(isUpper, -tail, tail), center * std::numbers::sqrt2);
  });
}

// Modified functions of the first kind, of order 0 and 1, which "e" has times exp(-|x|). PyTorch
// has no derivatives of those that are called so.
FailureOr<Results> buildBessel(Call &call) {
  StringRef name = StringRef(call.schema.overload).split('.').first;
  int order = name.contains("i1") ? 1 : 0;
  bool isScaled = name.ends_with("e"), isConstant = name.contains("modified");
  return inDouble(call, [&](Formula &f, Expr x) {
    Expr size = abs(x), isFar = gt(size, kFar);
    Expr nearest = where(isFar, 1, x), farthest = where(isFar, size, kFar);
    Expr near = besselNear(nearest, order), far = scaledBesselFar(farthest, order);
    if (isScaled) {
      near = exp(-abs(nearest)) * near;
    } else {
      // Infinity times a derivative below 0 would be one of the other sign, and no number with it.
      Expr growth = exp(farthest);
      far = growth * where(eq(growth, kInfinity), 1, far);
    }
    Expr result = where(isFar, order == 0 ? far : sign(x) * far, near);
    return isConstant ? f.detached(result) : result;
  });
}

} // namespace shardc::torch_export
