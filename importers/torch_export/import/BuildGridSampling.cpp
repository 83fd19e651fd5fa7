// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that read an image at coordinates that a tensor gives
// (torch.nn.functional.grid_sample).
//
// An element of the result is a sum of pixels at whole coordinates, each with a weight. A pixel is
// one of a row of all pixels of its image and channel, so that batch and channels may be sharded.
#include "importers/torch_export/import/Formula.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

enum class Interpolation : int64_t { Linear, Nearest, Cubic };
enum class Padding : int64_t { Zeros, Border, Reflection };

/// Pixels along one dim: a whole coordinate, as a float, and a weight (null for 1).
struct GridTap {
  Value at, weight;
};

struct GridSampling {
  Call &call;
  Emitter emit;
  Interpolation mode;
  Padding padding;
  bool alignCorners;
  Type type;                       ///< in which coordinates and sums are computed
  SmallVector<OpFoldResult> image; ///< its sizes

  int64_t spatial() const { return static_cast<int64_t>(image.size()) - 2; }
  Type i64() { return call.builder.getI64Type(); }
  Value number(double x) { return emit.scalar(x, type); }
  Value plus(Value x, double y) { return emit.add(x, number(y)); }
  Value times(Value x, double y) { return emit.mul(x, number(y)); }
  Value floor(Value x) { return emit.unary<aten::FloorOp>(x); }

  /// The size of a spatial dim.
  Value size(int64_t dim, Type of) {
    OpFoldResult given = image[dim + 2];
    if (std::optional<int64_t> fixed = getConstantIntValue(given))
      return isa<FloatType>(of) ? emit.scalar(static_cast<double>(*fixed), of)
                                : emit.integer(*fixed, of);
    return emit.cast(emit.ofIndex(cast<Value>(given), i64()), of);
  }

  /// From -1 ... 1 to coordinates of pixels.
  Value unnormalized(Value x, int64_t dim) {
    if (alignCorners)
      return emit.mul(times(plus(x, 1), 0.5), plus(size(dim, type), -1));
    return times(plus(emit.mul(plus(x, 1), size(dim, type)), -1), 0.5);
  }

  /// At a bound and outside of it, a coordinate is the bound, and has no derivative.
  Value clipped(Value x, int64_t dim) {
    Value least = number(0), most = plus(size(dim, type), -1);
    x = emit.where(emit.binary<aten::LeOp>(x, least), least, x);
    return emit.where(emit.binary<aten::GeOp>(x, most), most, x);
  }

  /// Reflected at the corners' centres, or at the borders half a pixel outside of them, as often as
  /// it takes.
  Value reflected(Value x, int64_t dim) {
    Value span = alignCorners ? plus(size(dim, type), -1) : size(dim, type);
    double least = alignCorners ? 0 : -0.5;
    Value isPoint = emit.binary<aten::EqOp>(span, number(0));
    Value length = emit.where(isPoint, number(1), span);
    x = plus(x, -least);
    x = emit.where(emit.binary<aten::LtOp>(x, number(0)), emit.unary<aten::NegOp>(x), x);
    Value extra = emit.binary<aten::FmodOp>(x, length), flips = floor(emit.div(x, length));
    Value isOdd = emit.binary<aten::NeOp>(emit.binary<aten::FmodOp>(flips, number(2)), number(0));
    Value inside = plus(emit.where(isOdd, emit.sub(length, extra), extra), least);
    return emit.where(isPoint, number(0), inside);
  }

  Value padded(Value x, int64_t dim) {
    if (padding == Padding::Zeros)
      return x;
    return clipped(padding == Padding::Reflection ? reflected(x, dim) : x, dim);
  }

  SmallVector<GridTap> taps(Value x, int64_t dim) {
    x = unnormalized(x, dim);
    if (mode == Interpolation::Nearest)
      return {{emit.unary<aten::RoundOp>(padded(x, dim)), {}}};
    if (mode == Interpolation::Linear)
      x = padded(x, dim);
    Value first = floor(x), part = emit.sub(x, first), rest = emit.sub(number(1), part);
    if (mode == Interpolation::Linear)
      return {{first, rest}, {plus(first, 1), part}};
    SmallVector<GridTap> all;
    Value weights[] = {outer(plus(part, 1)), inner(part), inner(rest), outer(plus(rest, 1))};
    for (auto [i, weight] : llvm::enumerate(weights))
      all.push_back({padded(plus(first, static_cast<double>(i) - 1), dim), weight});
    return all;
  }

  // The cubic convolution, for pixels at a distance of less than 1 and of 1 to 2.
  static constexpr double kCubic = -0.75;
  Value inner(Value x) {
    return plus(emit.mul(emit.mul(plus(times(x, kCubic + 2), -(kCubic + 3)), x), x), 1);
  }
  Value outer(Value x) {
    Value inside = plus(emit.mul(plus(times(x, kCubic), -5 * kCubic), x), 8 * kCubic);
    return plus(emit.mul(inside, x), -4 * kCubic);
  }

  /// Sums over all combinations of taps, dim after dim.
  struct Combination {
    Value place, isInside, weight;
  };
  void combine(ArrayRef<SmallVector<GridTap>> all, int64_t dim, Combination so,
               SmallVectorImpl<Combination> &found) {
    if (dim == spatial()) {
      found.push_back(so);
      return;
    }
    for (const GridTap &tap : all[dim]) {
      Value most = plus(size(dim, type), -1);
      Value isInside = emit.binary<aten::LogicalAndOp>(emit.binary<aten::GeOp>(tap.at, number(0)),
                                                       emit.binary<aten::LeOp>(tap.at, most));
      Value place = emit.cast(emit.where(isInside, tap.at, number(0)), i64());
      Combination next = so;
      next.place = so.place ? emit.add(emit.mul(so.place, size(dim, i64())), place) : place;
      next.isInside =
          so.isInside ? emit.binary<aten::LogicalAndOp>(so.isInside, isInside) : isInside;
      if (tap.weight)
        next.weight = so.weight ? emit.mul(so.weight, tap.weight) : tap.weight;
      combine(all, dim + 1, next, found);
    }
  }

  /// `coordinates`, of each spatial dim, are images of one channel and of one row.
  Value sample(Value pixels, ArrayRef<Value> coordinates) {
    SmallVector<SmallVector<GridTap>> all;
    for (auto [dim, x] : llvm::enumerate(coordinates))
      all.push_back(taps(x, static_cast<int64_t>(dim)));
    SmallVector<Combination> combinations;
    combine(all, 0, {}, combinations);
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, coordinates.front());
    sizes[1] = image[1];
    Value sum, none = number(0);
    for (const Combination &one : combinations) {
      Value place = emit.full(sizes, one.place);
      Value read = aten::GatherOp::create(call.builder, call.loc, pixels, 2, place);
      read = emit.where(one.isInside, emit.cast(read, type), none);
      if (one.weight)
        read = emit.mul(read, emit.where(one.isInside, one.weight, none));
      sum = sum ? emit.add(sum, read) : read;
    }
    return sum;
  }
};

} // namespace

// Where each pixel of an image comes from, by a matrix for each image: [N, ..., dims].
FailureOr<Results> buildAffineGrid(Call &call) {
  Formula f(call);
  Expr theta = f.tensor("theta");
  FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
  bool isAligned = f.flag("align_corners");
  if (f.failed() || failed(shape))
    return failure();
  int64_t dims = static_cast<int64_t>(shape->size()) - 2;
  ArrayRef<OpFoldResult> image = ArrayRef(*shape).slice(1, dims);
  // Between -1 and 1, of the ends or of the outer edges of the pixels there.
  SmallVector<Value> columns;
  for (int64_t dim = dims; dim-- > 0;) {
    Type type = theta.elementType();
    Expr count = f.number(image[dim], type), place = cast(f.range(image[dim]), type);
    Expr steps = maximum(count - 1, count.number(1));
    Expr at = place * 2 / steps - 1;
    if (!isAligned)
      at = at * ((count - 1) / count);
    SmallVector<OpFoldResult> one(dims + 1, f.one());
    one[dim] = image[dim];
    SmallVector<OpFoldResult> all(image);
    all.push_back(f.one());
    columns.push_back(expand(view(where(le(count, 1), 0, at), one), all).value);
  }
  columns.push_back(f.emit.full(f.sizes(f.of(columns.front())), theta.number(1).value));
  Expr base = f.of(f.emit.cat(columns, dims));
  base = view(base, {f.product(image), call.builder.getIndexAttr(dims + 1)});
  return f.result(view(matmul(base, transpose(theta, 1, 2)), *shape));
}

FailureOr<Results> buildGridSample(Call &call) {
  FailureOr<Value> input = call.tensor("input"), grid = call.tensor("grid");
  FailureOr<std::optional<int64_t>> mode = call.integer("interpolation_mode"),
                                    padding = call.integer("padding_mode");
  FailureOr<bool> align = call.boolean("align_corners");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(input) || failed(grid) || failed(mode) || failed(padding) || failed(align) ||
      failed(sizes))
    return failure();
  Emitter emit(call.builder, call.loc);
  Type element = aten::elementTypeOf(*input);
  GridSampling sampling{call,
                        emit,
                        static_cast<Interpolation>(**mode),
                        static_cast<Padding>(**padding),
                        *align,
                        Emitter::accumulator(element),
                        sizesOf(call.builder, call.loc, *input)};
  auto product = [&](ArrayRef<OpFoldResult> list) {
    OpFoldResult count = call.builder.getIndexAttr(1);
    for (OpFoldResult size : list)
      count = multiplySizes(call.builder, call.loc, count, size);
    return count;
  };
  ArrayRef<OpFoldResult> of = sampling.image, to = *sizes;
  Value pixels = emit.view(*input, {of[0], of[1], product(of.drop_front(2))});
  SmallVector<OpFoldResult> row = {to[0], call.builder.getIndexAttr(1), product(to.drop_front(2))};
  int64_t last = aten::typeOf(*grid).getRank() - 1;
  SmallVector<Value> coordinates;
  // The last dim comes first in a grid.
  for (int64_t dim = sampling.spatial(); dim-- > 0;) {
    FailureOr<Value> one =
        call.buildOne("aten.select", {{"self", {*grid}}},
                      {call.integerAttr("dim", last), call.integerAttr("static_index", dim)});
    if (failed(one))
      return failure();
    coordinates.push_back(emit.cast(emit.view(*one, row), sampling.type));
  }
  Value result = sampling.sample(pixels, coordinates);
  return Results{emit.cast(emit.view(result, *sizes), element)};
}

} // namespace shardc::torch_export
