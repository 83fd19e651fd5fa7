// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/ResampledPositions.h"

#include "dialects/aten/KnownLookups.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {

int64_t ResampledPositions::repetition(int64_t dim) const {
  std::optional<int64_t> from = fixed(in[dim]), to = fixed(out[dim]);
  if (!isNearest() || !from || !to || *from == 0 || *to % *from != 0)
    return 0;
  // PyTorch's own positions may differ.
  int64_t times = *to / *from;
  std::optional<SmallVector<int64_t>> positions = nearest(dim, *from, *to);
  if (!positions)
    return 0;
  for (auto [i, position] : llvm::enumerate(*positions))
    if (position != static_cast<int64_t>(i) / times)
      return 0;
  return times;
}

Value ResampledPositions::number(OpFoldResult size, Type type) {
  if (std::optional<int64_t> constant = fixed(size))
    return isa<FloatType>(type) ? emit.scalar(static_cast<double>(*constant), type)
                                : emit.integer(*constant, type);
  Value whole = emit.ofIndex(cast<Value>(size), emit.getBuilder().getI64Type());
  return emit.cast(whole, type);
}
Value ResampledPositions::range(OpFoldResult length) {
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(emit.getBuilder(), emit.getLoc(), size);
  };
  return emit.range(value(emit.getBuilder().getIndexAttr(0)), value(length));
}

Value ResampledPositions::scale(int64_t dim, Type type) {
  if (alignCorners) {
    std::optional<int64_t> to = fixed(out[dim]);
    if (to && *to <= 1)
      return emit.scalar(0, type);
    Value steps = plus(number(out[dim], type), -1);
    Value one = emit.scalar(1, type);
    Value ratio = emit.div(plus(number(in[dim], type), -1), atLeast(steps, one));
    return to ? ratio
              : emit.where(emit.binary<aten::GtOp>(steps, emit.scalar(0, type)), ratio,
                           emit.scalar(0, type));
  }
  if (factorOf(dim) > 0)
    return emit.scalar(type.isF64() ? 1.0 / factorOf(dim) : static_cast<float>(1.0 / factorOf(dim)),
                       type);
  return emit.div(number(in[dim], type), number(out[dim], type));
}

/// Of longer dims, the program computes them.
static constexpr int64_t kMostKnown = 1 << 16;

SmallVector<Tap> ResampledPositions::taps(int64_t dim) {
  std::optional<int64_t> from = fixed(in[dim]), to = fixed(out[dim]);
  if (!from || !to || *from <= 0 || *to <= 0 || *to > kMostKnown)
    return computedTaps(dim);
  if (!isNearest())
    return wide.isF64() ? knownTaps<double>(dim, *from, *to) : knownTaps<float>(dim, *from, *to);
  if (std::optional<SmallVector<int64_t>> positions = nearest(dim, *from, *to))
    return {{aten::vectorOf(emit, *positions), {}}};
  return computedTaps(dim);
}

std::optional<SmallVector<int64_t>> ResampledPositions::nearest(int64_t dim, int64_t from,
                                                                int64_t to) const {
  auto positions = [&](bool looks) {
    return wide.isF64() && !looks ? nearestIn<double>(dim, from, to, looks)
                                  : nearestIn<float>(dim, from, to, looks);
  };
  std::optional<bool> looks = looksAtSizes();
  SmallVector<int64_t> found = positions(looks.value_or(true));
  if (!looks && found != positions(false))
    return std::nullopt;
  return found;
}
template <typename T>
SmallVector<int64_t> ResampledPositions::nearestIn(int64_t dim, int64_t from, int64_t to,
                                                   bool looks) const {
  double factor = factorOf(dim);
  T scale = factor > 0 ? static_cast<T>(1.0 / factor) : static_cast<T>(from) / static_cast<T>(to);
  bool isGiven = mode == Mode::Nearest && factor > 0 && looks;
  SmallVector<int64_t> found;
  for (int64_t i = 0; i < to; ++i) {
    T at = static_cast<T>(i) * scale;
    if (mode == Mode::NearestExact) {
      T middle = static_cast<T>(i) + T(0.5);
      at = looks ? middle * scale : std::max(std::fma(scale, middle, T(-0.5)), T(0)) + T(0.5);
    }
    // It is rounded down in f32, in f64 as well. Factors may be so small that it is no number.
    float down = std::floor(static_cast<float>(at));
    int64_t position = !(down >= 0)                       ? 0
                       : down >= static_cast<float>(from) ? from - 1
                                                          : static_cast<int64_t>(down);
    found.push_back(isGiven && from == to       ? i
                    : isGiven && 2 * from == to ? i / 2
                                                : std::min(position, from - 1));
  }
  return found;
}

template <typename T>
SmallVector<Tap> ResampledPositions::knownTaps(int64_t dim, int64_t from, int64_t to) {
  double factor = factorOf(dim);
  T scale = alignCorners ? (to > 1 ? static_cast<T>(from - 1) / static_cast<T>(to - 1) : T(0))
            : factor > 0 ? static_cast<T>(1.0 / factor)
                         : static_cast<T>(from) / static_cast<T>(to);
  auto atMostLast = [&](T x) {
    return x < static_cast<T>(from) ? static_cast<int64_t>(x) : from - 1;
  };
  size_t count = mode == Mode::Linear ? 2 : 4;
  SmallVector<SmallVector<int64_t>> positions(count);
  SmallVector<SmallVector<T>> weights(count);
  for (int64_t i = 0; i < to; ++i) {
    T source =
        alignCorners ? static_cast<T>(i) * scale : (static_cast<T>(i) + T(0.5)) * scale + T(-0.5);
    if (mode == Mode::Linear)
      source = std::max(source, T(0));
    int64_t first = atMostLast(std::floor(source));
    T part = std::clamp(source - static_cast<T>(first), T(0), T(1)), rest = T(1) - part;
    SmallVector<T> own = {rest, part};
    if (mode == Mode::Cubic)
      own = {outerWeight(part + T(1)), innerWeight(part), innerWeight(rest),
             outerWeight(rest + T(1))};
    for (auto [tap, weight] : llvm::enumerate(own)) {
      int64_t position = first + static_cast<int64_t>(tap) - (mode == Mode::Cubic ? 1 : 0);
      positions[tap].push_back(std::clamp<int64_t>(position, 0, from - 1));
      weights[tap].push_back(weight);
    }
  }
  auto type = RankedTensorType::get({to}, wide);
  SmallVector<Tap> all;
  for (auto [at, weight] : llvm::zip_equal(positions, weights))
    all.push_back({aten::vectorOf(emit, at),
                   aten::ConstantOp::create(emit.getBuilder(), emit.getLoc(), type,
                                            DenseElementsAttr::get(type, ArrayRef(weight)))});
  return all;
}

Value ResampledPositions::computedNearest(int64_t dim, bool looks) {
  Type f32 = emit.getBuilder().getF32Type(), f64 = emit.getBuilder().getF64Type();
  Type i64 = emit.getBuilder().getI64Type(), type = wide.isF64() && !looks ? f64 : f32;
  Value to = range(out[dim]), at = emit.cast(to, type);
  Value last = emit.sub(number(in[dim], i64), emit.integer(1, i64));
  if (mode == Mode::Nearest) {
    at = emit.mul(at, scale(dim, type));
  } else if (looks) {
    at = emit.mul(plus(at, 0.5), scale(dim, type));
  } else {
    // A fused multiplication and addition of f32 is exact in f64 until it is rounded. That of f64
    // differs in a last digit, of which nothing is left in f32.
    Value middle = plus(emit.cast(to, f64), 0.5);
    Value fused = plus(emit.mul(emit.cast(scale(dim, type), f64), middle), -0.5);
    at = plus(atLeast(emit.cast(fused, type), emit.scalar(0, type)), 0.5);
  }
  Value found = atMost(floor(emit.cast(at, f32)), last);
  if (mode == Mode::Nearest && looks && factorOf(dim) > 0) {
    Value from = number(in[dim], i64), target = number(out[dim], i64);
    Value two = emit.integer(2, i64);
    Value half = aten::DivOp::create(emit.getBuilder(), emit.getLoc(), to, two,
                                     emit.getBuilder().getStringAttr("floor"));
    found = emit.where(emit.binary<aten::EqOp>(emit.mul(from, two), target), half, found);
    found = emit.where(emit.binary<aten::EqOp>(from, target), to, found);
  }
  return found;
}
Value ResampledPositions::computedNearest(int64_t dim) {
  std::optional<bool> looks = looksAtSizes();
  bool areAlike = isExact(dim) || (mode == Mode::Nearest && factorOf(dim) <= 0 && !wide.isF64());
  if (looks || areAlike)
    return computedNearest(dim, looks.value_or(false));
  Type i64 = emit.getBuilder().getI64Type();
  Value sum = emit.add(number(out[rank() - 2], i64), number(out[rank() - 1], i64));
  Value isSmall = emit.binary<aten::LeOp>(sum, emit.integer(kMostSmall, i64));
  return emit.where(isSmall, computedNearest(dim, true), computedNearest(dim, false));
}

SmallVector<Tap> ResampledPositions::computedTaps(int64_t dim) {
  if (isNearest())
    return {{computedNearest(dim), {}}};
  Type type = wide, i64 = emit.getBuilder().getI64Type();
  Value at = emit.cast(range(out[dim]), type);
  Value last = emit.sub(number(in[dim], i64), emit.integer(1, i64));
  Value source = alignCorners ? emit.mul(at, scale(dim, type))
                              : plus(emit.mul(plus(at, 0.5), scale(dim, type)), -0.5);
  if (mode == Mode::Linear)
    source = atLeast(source, emit.scalar(0, type));
  Value first = atMost(floor(source), last);
  Value part = emit.sub(source, emit.cast(first, type));
  part = atMost(atLeast(part, emit.scalar(0, type)), emit.scalar(1, type));
  Value rest = emit.sub(emit.scalar(1, type), part);
  if (mode == Mode::Linear) {
    Value second = atMost(emit.add(first, emit.integer(1, i64)), last);
    return {{first, rest}, {second, part}};
  }
  SmallVector<Value> weights = {outer(plus(part, 1)), inner(part), inner(rest),
                                outer(plus(rest, 1))};
  SmallVector<Tap> all;
  for (auto [i, weight] : llvm::enumerate(weights)) {
    Value position = emit.add(first, emit.integer(static_cast<int64_t>(i) - 1, i64));
    all.push_back({atLeast(atMost(position, last), emit.integer(0, i64)), weight});
  }
  return all;
}

Value ResampledPositions::inner(Value x) {
  Value inside = plus(times(x, kCubic + 2), -(kCubic + 3));
  return plus(emit.mul(emit.mul(inside, x), x), 1);
}
Value ResampledPositions::outer(Value x) {
  Value inside = plus(times(x, kCubic), -5 * kCubic);
  inside = plus(emit.mul(inside, x), 8 * kCubic);
  return plus(emit.mul(inside, x), -4 * kCubic);
}

std::optional<aten::LookupLine> ResampledPositions::lineOf(int64_t dim) const {
  constexpr double kMost = 1 << 10; // so that rounding is far less than a chunk
  aten::LookupLine line;
  line.alignsCorners = alignCorners;
  bool isExact = false;
  if (double factor = factorOf(dim); factor > 0 && !alignCorners) {
    if (mode == Mode::Nearest && looksAtSizes().value_or(true) && !followsFactors)
      return std::nullopt;
    for (line.numerator = 1; factor * static_cast<double>(line.numerator) !=
                             std::floor(factor * static_cast<double>(line.numerator));
         line.numerator *= 2)
      if (static_cast<double>(line.numerator) >= kMost)
        return std::nullopt;
    if (factor * static_cast<double>(line.numerator) > kMost)
      return std::nullopt;
    line.denominator = static_cast<int64_t>(factor * static_cast<double>(line.numerator));
    isExact = llvm::isPowerOf2_64(static_cast<uint64_t>(line.denominator));
  }
  line.half = mode != Mode::Nearest && !alignCorners ? 1 : 0;
  line.shift = !isNearest() && !alignCorners ? 1 : 0;
  // Where the scale is no float, a product with it may be on the other side of an integer.
  line.before = line.after = isExact ? 0 : 1;
  if (!isNearest())
    line.after += 1;
  if (mode == Mode::Cubic) {
    line.before += 1;
    line.after += 1;
  }
  return line;
}

} // namespace shardc::torch_export
