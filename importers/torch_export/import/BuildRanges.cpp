// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that make numbers of their positions: steps between two bounds, and windows of signals.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Formula.h"

#include "dialects/aten/KnownLookups.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// `count` numbers from start to end, in this type; one is the start. As in PyTorch, the second
/// half is counted from the end.
Expr steps(Formula &f, OpFoldResult count, Expr start, Expr end, Type type) {
  Type i64 = f.call.builder.getI64Type();
  auto number = [&](int64_t x) { return f.of(f.emit.integer(x, i64)); };
  Expr place = f.range(count), all = f.number(count, i64);
  Expr isOne = le(all, number(1));
  Expr last = cast(where(isOne, number(1), all - number(1)), type);
  Expr isFirstHalf = logicalOr(lt(place, roundedQuotient(all, number(2), "floor")), isOne);
  place = cast(place, type);
  Expr step = (end - start) / last;
  return where(isFirstHalf, start + place * step, end - (last - place) * step);
}

/// The type in which PyTorch computes: integers are cut off at the end.
Type computeType(Formula &f, Type type) {
  return isa<FloatType>(type) ? Emitter::accumulator(type) : f.call.builder.getF64Type();
}

Expr numberOf(Formula &f, double x, Type type) { return f.of(f.emit.scalar(x, type)); }

} // namespace

FailureOr<Results> buildLinearSteps(Call &call) {
  Formula f(call);
  double start = f.real("start"), end = f.real("end");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  if (f.failed() || failed(sizes) || !type)
    return failure();
  if (!isa<FloatType>(type)) {
    start = std::trunc(start);
    end = std::trunc(end);
  }
  Type wide = computeType(f, type);
  return f.result(steps(f, sizes->front(), numberOf(f, start, wide), numberOf(f, end, wide), wide));
}

FailureOr<Results> buildLogarithmicSteps(Call &call) {
  Formula f(call);
  double start = f.real("start"), end = f.real("end"), base = f.real("base", 10);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  if (f.failed() || failed(sizes) || !type)
    return failure();
  // As in PyTorch, bounds of integers are some, unless there is one number alone.
  if (!isa<FloatType>(type) && getConstantIntValue(sizes->front()) != 1) {
    start = std::trunc(start);
    end = std::trunc(end);
  }
  Type wide = computeType(f, type);
  Expr exponents = steps(f, sizes->front(), numberOf(f, start, wide), numberOf(f, end, wide), wide);
  return f.result(pow(exponents.number(base), exponents));
}

// Between bounds that tensors say, to which PyTorch gives no gradient.
FailureOr<Results> buildStepsBetween(Call &call) {
  bool isLogarithmic = StringRef(call.schema.overload).starts_with("logspace");
  Formula f(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  if (failed(sizes) || !type)
    return failure();
  Type wide = computeType(f, type);
  auto bound = [&](StringRef name) {
    Expr value = f.tensorOrNumber(name, wide);
    return value ? f.detached(cast(value, wide)) : value;
  };
  Expr start = bound("start"), end = bound("end");
  double base = isLogarithmic ? f.real("base", 10) : 0;
  if (f.failed())
    return failure();
  bool isOne = isLogarithmic && getConstantIntValue(sizes->front()) == 1;
  if (!isa<FloatType>(type) && !isOne) {
    start = start.with(f.emit.unary<aten::TruncOp>(start.value));
    end = end.with(f.emit.unary<aten::TruncOp>(end.value));
  }
  Expr result = steps(f, sizes->front(), start, end, wide);
  return f.result(isLogarithmic ? pow(result.number(base), result) : result);
}

// A periodic window is the symmetric one of a number more, without that.
FailureOr<Results> buildWindow(Call &call) {
  Formula f(call);
  bool isPeriodic = !call.schema.find("periodic") || f.flag("periodic");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  Type type = call.resultElementType();
  double alpha = f.real("alpha", 0.54), beta = f.real("beta", 0.46);
  if (f.failed() || failed(sizes) || !type)
    return failure();
  std::optional<int64_t> length = getConstantIntValue(sizes->front());
  if (!length)
    return call.error() << "a window of unknown length is not supported";
  Expr place = cast(f.range(sizes->front()), Emitter::accumulator(type));
  if (*length <= 1)
    return f.result(f.constant(place, 1));
  auto steps = static_cast<double>(isPeriodic ? *length : *length - 1);
  auto wave = [&](double waves) { return cos(place * (waves * 2 * M_PI / steps)); };
  StringRef name = StringRef(call.schema.overload).split('.').first;
  if (name == "hann_window")
    return f.result(0.5 - wave(1) * 0.5);
  if (name == "hamming_window")
    return f.result(alpha - wave(1) * beta);
  if (name == "blackman_window")
    return f.result(wave(2) * 0.08 - wave(1) * 0.5 + 0.42);
  if (name == "kaiser_window") {
    // The modified Bessel function of order 0 of places on a half circle; known numbers.
    double shape = std::abs(f.real("beta", 12)), most = std::cyl_bessel_i(0, shape);
    SmallVector<double> numbers;
    for (int64_t i = 0; i < *length; ++i) {
      double at = 2 * static_cast<double>(i) / steps - 1;
      numbers.push_back(std::cyl_bessel_i(0, shape * std::sqrt(std::max(0.0, 1 - at * at))) / most);
    }
    return f.result(f.of(aten::vectorOf(f.emit, numbers)));
  }
  // bartlett_window: up to the middle and down again.
  return f.result(1.0 - abs(place * (2 / steps) - 1));
}

} // namespace shardc::torch_export
