// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differences of neighbours along a dim, and derivatives that are estimated from them.
#include "importers/torch_export/import/Formula.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// Elements [begin, begin + count) along a dim; a negative `begin` is counted from the end.
Expr part(Formula &f, Expr x, int64_t dim, int64_t begin, OpFoldResult count) {
  OpBuilder &builder = f.call.builder;
  OpFoldResult start = builder.getIndexAttr(begin);
  if (begin < 0)
    start = addSizes(builder, f.call.loc, f.sizes(x)[dim], start);
  return f.of(f.emit.slice(x.value, dim, start, addSizes(builder, f.call.loc, start, count)));
}

Expr concatenated(Formula &f, ArrayRef<Expr> parts, int64_t dim) {
  SmallVector<Value> values;
  for (Expr one : parts)
    values.push_back(one.value);
  return f.of(f.emit.cat(values, dim));
}

/// Of one dim: `step` is the gap between all neighbours, or `gaps` has one for each two, along the
/// dim of a tensor that broadcasts.
struct Estimate {
  Formula &f;
  Type type; ///< of the result: integers are subtracted as such
  int64_t dim;
  int64_t order; ///< of the formula at the edges
  double step = 1;
  Expr gaps = {};

  /// `count` elements from `begin` on.
  Expr at(Expr x, int64_t begin, OpFoldResult count) { return part(f, x, dim, begin, count); }
  Expr at(Expr x, int64_t begin) { return at(x, begin, f.one()); }
  Expr less(Expr x, Expr y) { return cast(x - y, type); }

  Expr of(Expr x) {
    OpFoldResult inner =
        addSizes(f.call.builder, f.call.loc, f.sizes(x)[dim], f.call.builder.getIndexAttr(-2));
    if (gaps || order == 2)
      x = cast(x, type); // which are multiplied by fractions
    Expr before = at(x, 0, inner), here = at(x, 1, inner), after = at(x, 2, inner);
    if (!gaps) {
      Expr middle = less(after, before) / step * 0.5;
      if (order == 1)
        return concatenated(
            f, {less(at(x, 1), at(x, 0)) / step, middle, less(at(x, -1), at(x, -2)) / step}, dim);
      return concatenated(f,
                          {(at(x, 0) * -1.5 + at(x, 1) * 2 - at(x, 2) * 0.5) / step, middle,
                           (at(x, -1) * 1.5 - at(x, -2) * 2 + at(x, -3) * 0.5) / step},
                          dim);
    }
    // The parabola through three neighbours with gaps g and h, at the one in the middle.
    Expr g = at(gaps, 0, inner), h = at(gaps, 1, inner);
    Expr middle =
        before * (-h / (g * (g + h))) + here * ((h - g) / (g * h)) + after * (g / (h * (g + h)));
    if (order == 1)
      return concatenated(
          f, {(at(x, 1) - at(x, 0)) / at(gaps, 0), middle, (at(x, -1) - at(x, -2)) / at(gaps, -1)},
          dim);
    // The same at its ends: the gap next to the edge first.
    auto edge = [&](Expr a, Expr b, Expr x0, Expr x1, Expr x2) {
      return x0 * (-(a * 2 + b) / (a * (a + b))) + x1 * ((a + b) / (a * b)) +
             x2 * (-a / (b * (a + b)));
    };
    Expr first = edge(at(gaps, 0), at(gaps, 1), at(x, 0), at(x, 1), at(x, 2));
    Expr last = edge(at(gaps, -1), at(gaps, -2), at(x, -1), at(x, -2), at(x, -3));
    return concatenated(f, {first, middle, -last}, dim);
  }
};

} // namespace

FailureOr<Results> buildDifference(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), before = f.tensor("prepend"), after = f.tensor("append");
  int64_t times = f.integer("n", 1);
  int64_t dim = x ? f.dim("dim", x.rank()) : 0;
  if (f.failed())
    return failure();
  if ((before || after) && times > 0) {
    SmallVector<Expr> parts;
    for (Expr one : {before, x, after})
      if (one)
        parts.push_back(one);
    x = concatenated(f, parts, dim);
  }
  int64_t size = aten::shapeOf(x.value)[dim];
  if (!ShapedType::isDynamic(size))
    times = std::min(times, size);
  if (times == 0)
    return Results{f.emit.unary<aten::CloneOp>(x.value)};
  bool isBool = x.elementType().isInteger(1);
  for (int64_t i = 0; i < times; ++i) {
    OpFoldResult end = f.sizes(x)[dim], one = f.one(), less = call.builder.getIndexAttr(-1);
    Value later = f.emit.slice(x.value, dim, one, end),
          earlier = f.emit.slice(x.value, dim, call.builder.getIndexAttr(0),
                                 addSizes(call.builder, call.loc, end, less));
    x = f.of(isBool ? f.emit.binary<aten::NeOp>(later, earlier) : f.emit.sub(later, earlier));
  }
  return f.result(x);
}

// torch.gradient, for each dim that is asked for.
FailureOr<Results> buildGradient(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self");
  Type type = call.resultElementType();
  int64_t order = f.integer("edge_order", 1);
  if (f.failed() || !type)
    return failure();
  StringRef overload = StringRef(call.schema.overload).split('.').second;
  SmallVector<int64_t> dims;
  if (!call.schema.find("dim") || call.isNone("dim"))
    llvm::append_range(dims, llvm::seq<int64_t>(0, x.rank()));
  else if (overload.ends_with("int"))
    dims = {f.dim("dim", x.rank())};
  else
    dims = f.dims("dim", x.rank());
  SmallVector<Expr> coordinates;
  SmallVector<double> steps;
  if (overload.starts_with("tensorarray")) {
    coordinates = f.tensors("spacing");
  } else if (overload == "scalarrayint" || overload == "scalarrayarray") {
    FailureOr<SmallVector<double>> given = call.reals("spacing");
    if (failed(given))
      return failure();
    steps = *given;
  } else if (call.schema.find("spacing")) {
    steps.assign(dims.size(), f.real("spacing", 1));
  } else {
    steps.assign(dims.size(), 1);
  }
  if (f.failed())
    return failure();
  if (std::max(steps.size(), coordinates.size()) != dims.size())
    return call.error() << "needs a spacing for each of " << dims.size() << " dims";
  Results results;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    int64_t size = aten::shapeOf(x.value)[dim];
    if (!ShapedType::isDynamic(size) && size <= order)
      return call.error() << "an estimate at the edges needs more elements along dim " << dim;
    Estimate estimate{f, type, dim, order};
    if (coordinates.empty()) {
      estimate.step = steps[i];
    } else {
      SmallVector<OpFoldResult> shape(x.rank(), f.one());
      shape[dim] = f.sizes(coordinates[i]).front();
      Expr places = view(cast(coordinates[i], type), shape);
      OpFoldResult gaps =
          addSizes(call.builder, call.loc, shape[dim], call.builder.getIndexAttr(-1));
      estimate.gaps = part(f, places, dim, 1, gaps) - part(f, places, dim, 0, gaps);
    }
    results.push_back(estimate.of(x).value);
  }
  return results;
}

} // namespace shardc::torch_export
