// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that change the size of images (torch.nn.functional.interpolate), and their backward.
//
// All of them go one spatial dim after the other: an element of the result is a sum of one, two or
// four elements of the dim, each with a weight that depends on the position alone. So they become
// lookups at positions that are computed as PyTorch does it, in the same element type: here where
// the sizes are known, else by the program. A repetition by a whole number is a view.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/KnownLookups.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {
namespace {

enum class Mode { Nearest, NearestExact, Linear, Cubic };

/// One element that is read: its position, and its weight (null for 1), as vectors along the
/// result.
struct Tap {
  Value position, weight;
};

struct Resampling {
  Call &call;
  Emitter emit;
  Mode mode = Mode::Nearest;
  bool alignCorners = false;
  bool isBackward = false;
  bool hasChannelsLast = false; ///< more than three of them
  /// Of the whole tensors; spatial dims are the last ones.
  SmallVector<OpFoldResult> in, out;
  /// Given as an argument; 0 where they follow from the sizes.
  SmallVector<double> factors;
  Type element, wide;

  explicit Resampling(Call &call) : call(call), emit(call.builder, call.loc) {}

  static FailureOr<Resampling> of(Call &call, Type element) {
    Resampling found(call);
    StringRef packet = StringRef(call.schema.overload).split('.').first;
    found.mode = packet.contains("nearest_exact") ? Mode::NearestExact
                 : packet.contains("nearest")     ? Mode::Nearest
                 : packet.contains("cubic")       ? Mode::Cubic
                                                  : Mode::Linear;
    found.element = element;
    found.wide = Emitter::accumulator(element);
    bool isNearest = found.mode == Mode::Nearest || found.mode == Mode::NearestExact;
    if (!isNearest && !isa<FloatType>(element))
      return call.error()
             << "only floats are interpolated between: cast the image before, and round "
                "after";
    if (call.schema.find("align_corners")) {
      FailureOr<bool> align = call.boolean("align_corners");
      if (failed(align))
        return failure();
      found.alignCorners = *align;
    }
    if (call.schema.find("scale_factors")) {
      if (auto *list = std::get_if<std::vector<double>>(call.find("scale_factors")))
        found.factors.assign(list->begin(), list->end());
      return found;
    }
    for (StringRef name : {"scales_d", "scales_h", "scales_w", "scales"}) {
      if (!call.schema.find(name))
        continue;
      FailureOr<std::optional<double>> factor = call.real(name);
      if (failed(factor))
        return failure();
      found.factors.push_back(factor->value_or(0));
    }
    return found;
  }

  int64_t rank() const { return static_cast<int64_t>(in.size()); }
  double factorOf(int64_t dim) const {
    return factors.empty() ? 0 : factors[dim - (rank() - static_cast<int64_t>(factors.size()))];
  }
  std::optional<int64_t> fixed(OpFoldResult size) const { return getConstantIntValue(size); }
  /// Whether nothing is done along a dim. By a factor near 1, PyTorch moves the elements of a dim
  /// that keeps its size, except in two modes.
  bool isSame(int64_t dim) const {
    bool followsSizes = alignCorners || factorOf(dim) <= 0 || factorOf(dim) == 1;
    if (!followsSizes && !(mode == Mode::Nearest && looksAtSizes()) && mode != Mode::Linear)
      return false;
    return in[dim] == out[dim] || (fixed(in[dim]) && fixed(in[dim]) == fixed(out[dim]));
  }

  bool isNearest() const { return mode == Mode::Nearest || mode == Mode::NearestExact; }
  /// Where elements are not interpolated between, PyTorch has two kernels (measured, 2.13 on CPUs
  /// with FMA). The one of which this is true computes positions in f32, and does not look at the
  /// factor where sizes are the same, or twice as many. It is for all derivatives, and for images
  /// of two dims that are small or have their channels last; sizes that are not known count as
  /// small. The other one computes in the type that sums of elements have.
  bool looksAtSizes() const {
    if (isBackward || hasChannelsLast)
      return true;
    std::optional<int64_t> height = fixed(out[rank() - 2]), width = fixed(out[rank() - 1]);
    return rank() == 4 && (!height || !width || *height + *width <= 128);
  }
  bool isInDouble() const { return wide.isF64() && !(isNearest() && looksAtSizes()); }

  /// In how many elements each element becomes, where they are alike and known; 0 otherwise.
  int64_t repetition(int64_t dim) const {
    std::optional<int64_t> from = fixed(in[dim]), to = fixed(out[dim]);
    if (!isNearest() || !from || !to || *from == 0 || *to % *from != 0)
      return 0;
    // PyTorch's own positions may differ.
    int64_t times = *to / *from;
    for (auto [i, position] : llvm::enumerate(nearest(dim, *from, *to)))
      if (position != static_cast<int64_t>(i) / times)
        return 0;
    return times;
  }

  Value number(OpFoldResult size, Type type) {
    if (std::optional<int64_t> constant = fixed(size))
      return isa<FloatType>(type) ? emit.scalar(static_cast<double>(*constant), type)
                                  : emit.integer(*constant, type);
    Value whole = emit.ofIndex(cast<Value>(size), call.builder.getI64Type());
    return emit.cast(whole, type);
  }
  Value range(OpFoldResult length) {
    auto value = [&](OpFoldResult size) {
      return getValueOrCreateConstantIndexOp(call.builder, call.loc, size);
    };
    return emit.range(value(call.builder.getIndexAttr(0)), value(length));
  }
  Value plus(Value x, double y) { return emit.add(x, emit.scalar(y, aten::elementTypeOf(x))); }
  Value times(Value x, double y) { return emit.mul(x, emit.scalar(y, aten::elementTypeOf(x))); }
  Value floor(Value x) {
    return emit.cast(emit.unary<aten::FloorOp>(x), call.builder.getI64Type());
  }
  Value atMost(Value x, Value y) { return emit.binary<aten::MinimumOp>(x, y); }
  Value atLeast(Value x, Value y) { return emit.binary<aten::MaximumOp>(x, y); }

  /// Elements of the image for one of the result, in `type`.
  Value scale(int64_t dim, Type type) {
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
      return emit.scalar(
          type.isF64() ? 1.0 / factorOf(dim) : static_cast<float>(1.0 / factorOf(dim)), type);
    return emit.div(number(in[dim], type), number(out[dim], type));
  }

  SmallVector<Tap> taps(int64_t dim) {
    std::optional<int64_t> from = fixed(in[dim]), to = fixed(out[dim]);
    if (!from || !to || *from <= 0 || *to <= 0 || *to > kMostKnown)
      return computedTaps(dim);
    if (isNearest())
      return {{aten::vectorOf(emit, nearest(dim, *from, *to)), {}}};
    return isInDouble() ? knownTaps<double>(dim, *from, *to) : knownTaps<float>(dim, *from, *to);
  }

  /// Of longer dims, the program computes them.
  static constexpr int64_t kMostKnown = 1 << 16;

  /// The positions of the elements that a dim of the result has.
  SmallVector<int64_t> nearest(int64_t dim, int64_t from, int64_t to) const {
    return isInDouble() ? nearestIn<double>(dim, from, to) : nearestIn<float>(dim, from, to);
  }
  template <typename T>
  SmallVector<int64_t> nearestIn(int64_t dim, int64_t from, int64_t to) const {
    double factor = factorOf(dim);
    T scale = factor > 0 ? static_cast<T>(1.0 / factor) : static_cast<T>(from) / static_cast<T>(to);
    bool looks = looksAtSizes(), isGiven = mode == Mode::Nearest && factor > 0 && looks;
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

  /// As computedTaps, as constants. `T` is the type in which PyTorch computes.
  template <typename T> SmallVector<Tap> knownTaps(int64_t dim, int64_t from, int64_t to) {
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
                     aten::ConstantOp::create(call.builder, call.loc, type,
                                              DenseElementsAttr::get(type, ArrayRef(weight)))});
    return all;
  }
  template <typename T> static T innerWeight(T x) {
    return ((x * T(kCubic + 2) + T(-(kCubic + 3))) * x) * x + T(1);
  }
  template <typename T> static T outerWeight(T x) {
    return ((x * T(kCubic) + T(-5 * kCubic)) * x + T(8 * kCubic)) * x + T(-4 * kCubic);
  }

  SmallVector<Tap> computedTaps(int64_t dim) {
    Type type = isInDouble() || !isNearest() ? wide : Type(call.builder.getF32Type());
    Type i64 = call.builder.getI64Type();
    Value to = range(out[dim]), at = emit.cast(to, type);
    Value last = emit.sub(number(in[dim], i64), emit.integer(1, i64));
    if (mode == Mode::NearestExact)
      return {{atMost(floor(emit.mul(plus(at, 0.5), scale(dim, type))), last), {}}};
    if (mode == Mode::Nearest) {
      Value found = atMost(floor(emit.mul(at, scale(dim, type))), last);
      if (factorOf(dim) > 0 && looksAtSizes()) {
        Value from = number(in[dim], i64), target = number(out[dim], i64);
        Value two = emit.integer(2, i64);
        Value half = aten::DivOp::create(call.builder, call.loc, to, two,
                                         call.builder.getStringAttr("floor"));
        found = emit.where(emit.binary<aten::EqOp>(emit.mul(from, two), target), half, found);
        found = emit.where(emit.binary<aten::EqOp>(from, target), to, found);
      }
      return {{found, {}}};
    }
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

  // The cubic convolution, for elements at a distance of less than 1 and of 1 to 2.
  static constexpr double kCubic = -0.75;
  Value inner(Value x) {
    Value inside = plus(times(x, kCubic + 2), -(kCubic + 3));
    return plus(emit.mul(emit.mul(inside, x), x), 1);
  }
  Value outer(Value x) {
    Value inside = plus(times(x, kCubic), -5 * kCubic);
    inside = plus(emit.mul(inside, x), 8 * kCubic);
    return plus(emit.mul(inside, x), -4 * kCubic);
  }

  /// A weight along `dim`.
  Value along(Value weight, int64_t dim) {
    SmallVector<OpFoldResult> sizes(rank() - dim, call.builder.getIndexAttr(1));
    sizes.front() = out[dim];
    return emit.view(weight, sizes);
  }

  Value forward(Value x) {
    bool isWide = false;
    // Outer dims first: they are the ones that ranks share out, and rows that are exchanged are
    // shorter before the inner dims grow.
    for (int64_t dim = 2; dim < rank(); ++dim) {
      if (isSame(dim))
        continue;
      SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x);
      if (int64_t many = repetition(dim)) {
        SmallVector<OpFoldResult> apart = sizes;
        apart.insert(apart.begin() + dim + 1, call.builder.getIndexAttr(many));
        sizes[dim] = out[dim];
        x = emit.view(emit.full(apart, emit.unsqueeze(x, dim + 1)), sizes);
        continue;
      }
      Value sum;
      for (const Tap &tap : taps(dim)) {
        Value read = aten::IndexSelectOp::create(call.builder, call.loc, x, dim, tap.position);
        if (tap.weight) {
          read = emit.mul(emit.cast(read, wide), along(tap.weight, dim));
          isWide = true;
        }
        sum = sum ? emit.add(sum, read) : read;
      }
      x = sum;
    }
    return isWide ? emit.cast(x, element) : x;
  }

  /// What each element of the image gets of those that read it, where these are known and few.
  Value sumsOf(Value values, Value position, int64_t dim) {
    auto constant = position.getDefiningOp<aten::ConstantOp>();
    if (!constant || !llvm::all_of(in, [&](OpFoldResult size) { return fixed(size); }))
      return Value();
    auto numbers = cast<DenseIntElementsAttr>(constant.getValue()).getValues<int64_t>();
    return aten::sumsAt(emit, values, llvm::to_vector(numbers), dim, *fixed(in[dim]));
  }

  FailureOr<Value> backward(Value grad) {
    // PyTorch's own copies where all sizes are kept, whatever the factors are.
    if (mode == Mode::Cubic && in == out)
      return grad;
    Value x = emit.cast(grad, wide);
    for (int64_t dim = rank() - 1; dim >= 2; --dim) {
      if (isSame(dim))
        continue;
      SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, x);
      if (int64_t many = repetition(dim)) {
        sizes[dim] = in[dim];
        sizes.insert(sizes.begin() + dim + 1, call.builder.getIndexAttr(many));
        x = emit.sum(emit.view(x, sizes), dim + 1, /*keepdim=*/false);
        continue;
      }
      sizes[dim] = in[dim];
      Value sum = emit.zeros(sizes, wide);
      for (const Tap &tap : taps(dim)) {
        Value values = tap.weight ? emit.mul(x, along(tap.weight, dim)) : x;
        if (Value sums = sumsOf(values, tap.position, dim)) {
          sum = emit.add(sum, sums);
          continue;
        }
        FailureOr<Value> added = call.buildOne(
            "aten.index_put", {{"self", {sum}}, {"indices", {tap.position}}, {"values", {values}}},
            {call.integersAttr("indices_at", dim),
             call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
        if (failed(added))
          return failure();
        sum = *added;
      }
      x = sum;
    }
    return emit.cast(x, element);
  }
};

} // namespace

/// Whether PyTorch has elements of all channels, of which there are more than three, side by side.
static bool hasManyChannelsLast(const TensorMeta &meta) {
  size_t rank = meta.sizes.size();
  if (rank < 4 || meta.strides.size() != rank || meta.sizes[1].value <= 3)
    return false;
  int64_t expected = 1;
  auto isNext = [&](size_t dim) {
    bool is = meta.sizes[dim].value == 1 || meta.strides[dim].value == expected;
    expected *= meta.sizes[dim].value;
    return is;
  };
  bool isSo = isNext(1);
  for (size_t dim = rank - 1; dim >= 2; --dim)
    isSo &= isNext(dim);
  return isSo && isNext(0);
}

FailureOr<Results> buildResampled(Call &call) {
  FailureOr<Value> image = call.tensor(call.schema.find("input") ? "input" : "self");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(image) || failed(sizes))
    return failure();
  FailureOr<Resampling> resampling = Resampling::of(call, aten::elementTypeOf(*image));
  if (failed(resampling))
    return failure();
  resampling->in = sizesOf(call.builder, call.loc, *image);
  if (const TensorMeta *meta = call.recorded(call.schema.find("input") ? "input" : "self"))
    resampling->hasChannelsLast = hasManyChannelsLast(*meta);
  resampling->out = *sizes;
  return Results{resampling->forward(*image)};
}

FailureOr<Results> buildResampledBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(grad) || failed(sizes))
    return failure();
  FailureOr<Resampling> resampling = Resampling::of(call, aten::elementTypeOf(*grad));
  if (failed(resampling))
    return failure();
  resampling->isBackward = true;
  resampling->in = *sizes;
  resampling->out = sizesOf(call.builder, call.loc, *grad);
  return one(resampling->backward(*grad));
}

FailureOr<Results> buildAntialiased(Call &call) {
  return call.error() << "resizing with antialias is not supported: use antialias=False, or resize "
                         "before the model";
}

} // namespace shardc::torch_export
