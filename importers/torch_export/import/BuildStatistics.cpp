// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that sum up a tensor: extremes, norms, distances, quantiles.
#include "importers/torch_export/import/Formula.h"
#include "importers/torch_export/import/Standard.h"

#include "dialects/aten/KnownLookups.h"
#include "dialects/aten/Sorting.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shardc::torch_export {
namespace {

Expr vectorNorm(Formula &f, Expr x, double ord, ArrayRef<int64_t> dims, bool keepdim) {
  SmallVector<NamedAttribute> attributes = {f.realAttr("ord", ord)};
  if (x.rank() > 0)
    attributes.push_back(f.call.integersAttr("dim", dims));
  if (keepdim)
    attributes.push_back(f.call.builder.getNamedAttr("keepdim", f.call.builder.getUnitAttr()));
  return f.op("aten.linalg_vector_norm", {{"self", {x.value}}}, attributes);
}

/// Of the matrices in two dims: the sum of squares, or the largest or smallest sum of a row or
/// column.
FailureOr<Results> matrixNorm(Formula &f, Expr x, StringRef kind, double ord,
                              ArrayRef<int64_t> dims, bool keepdim) {
  if (kind == "fro")
    return f.result(vectorNorm(f, x, 2, dims, keepdim));
  if (kind == "nuc" || std::abs(ord) == 2)
    return f.call.error() << "a norm of singular values is not supported";
  bool ofRows = std::isinf(ord);
  int64_t first = dims[ofRows ? 1 : 0], second = dims[ofRows ? 0 : 1];
  Expr sums = vectorNorm(f, x, 1, first, true);
  Expr norm = f.reduce(ord > 0 ? "aten.amax" : "aten.amin", sums, second, true);
  if (!keepdim) {
    norm = f.squeeze(norm, std::max(first, second));
    norm = f.squeeze(norm, std::min(first, second));
  }
  return f.result(norm);
}

Expr castToDtype(Formula &f, Expr x) {
  FailureOr<Type> type = f.call.schema.find("dtype") ? f.call.elementType("dtype") : Type();
  return succeeded(type) && *type ? cast(x, *type) : x;
}

/// |x1 - x2 + eps| along the last dim.
Expr distance(Formula &f, Expr x, Expr y, double p, double eps, bool keepdim) {
  Expr difference = x - y + eps;
  return vectorNorm(f, difference, p, difference.rank() - 1, keepdim);
}

} // namespace

FailureOr<Results> buildExtremes(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  bool keepdim = f.flag("keepdim");
  SmallVector<int64_t> dims = f.dims("dim", self ? self.rank() : 0);
  if (f.failed())
    return failure();
  Expr least = f.reduce("aten.amin", self, dims, keepdim),
       most = f.reduce("aten.amax", self, dims, keepdim);
  if (f.failed())
    return failure();
  return Results{least.value, most.value};
}

FailureOr<Results> buildOfNumbers(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  bool keepdim = f.flag("keepdim");
  SmallVector<int64_t> dims = f.dims("dim", self ? self.rank() : 0);
  Type type = call.resultElementType();
  if (f.failed() || !type)
    return failure();
  Type wide = Emitter::accumulator(type);
  Expr x = cast(castToDtype(f, self), wide), counted = cast(logicalNot(isNaN(x)), wide);
  Expr total = f.reduce("aten.sum", where(isNaN(x), 0, x), dims, keepdim);
  if (call.schema.overload == "nanmean.default")
    total = total / f.reduce("aten.sum", counted, dims, keepdim);
  return f.result(total);
}

FailureOr<Results> buildNorm(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  bool isMatrix = StringRef(call.schema.overload).starts_with("linalg_matrix_norm") ||
                  StringRef(call.schema.overload).starts_with("frobenius");
  bool keepdim = f.flag("keepdim");
  if (f.failed())
    return failure();
  self = castToDtype(f, self);
  const Argument *given = call.schema.find("ord") ? call.find("ord") : nullptr;
  StringRef kind;
  double ord = 2;
  if (!given || std::holds_alternative<NoneArg>(*given))
    kind = "fro";
  else if (std::holds_alternative<std::string_view>(*given))
    kind = f.text("ord");
  else
    ord = f.real("ord");
  bool isPlain = call.isNone("dim");
  SmallVector<int64_t> dims = f.dims("dim", self.rank());
  if (f.failed())
    return failure();
  if (kind == "fro" && (!given || std::holds_alternative<NoneArg>(*given)))
    return f.result(vectorNorm(f, self, 2, dims, keepdim));
  if (!isMatrix && kind.empty() && dims.size() != 2)
    return f.result(vectorNorm(f, self, ord, dims, keepdim));
  if (isPlain && dims.size() != 2)
    return call.error() << "the norm of a matrix needs two dims";
  return matrixNorm(f, self, kind, ord, dims, keepdim);
}

namespace {
/// Along all dims but one; -1: along all.
Expr normExcept(Formula &f, Expr v, double p, int64_t dim) {
  SmallVector<int64_t> dims = dimRange(0, v.rank());
  if (dim >= 0)
    llvm::erase(dims, dim);
  return dims.empty() && v.rank() > 0 ? abs(v) : vectorNorm(f, v, p, dims, dim >= 0);
}
} // namespace

FailureOr<Results> buildNormExcept(Call &call) {
  Formula f(call);
  Expr v = f.tensor("v");
  auto p = static_cast<double>(f.integer("pow", 2));
  int64_t dim = f.integer("dim");
  if (f.failed())
    return failure();
  return f.result(normExcept(f, v, p, dim == -1 ? -1 : f.dim("dim", v.rank())));
}

FailureOr<Results> buildWeightNorm(Call &call) {
  Formula f(call);
  Expr v = f.floats("v"), g = f.floats("g");
  int64_t dim = f.integer("dim");
  if (f.failed())
    return failure();
  return f.result(v * (g / normExcept(f, v, 2, dim == -1 ? -1 : f.dim("dim", v.rank()))));
}

// A norm below eps counts as eps, and has its derivative nevertheless, as in PyTorch.
FailureOr<Results> buildCosineSimilarity(Call &call) {
  Formula f(call);
  Expr x = f.floats("x1"), y = f.floats("x2");
  double eps = f.real("eps");
  if (f.failed())
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", std::max(x.rank(), y.rank()));
  if (failed(dim))
    return failure();
  // The norms are those of what broadcasting makes.
  SmallVector<OpFoldResult> sizes = f.sizes(x * y);
  auto scaled = [&](Expr of) {
    of = expand(of, sizes);
    Expr norm = of.rank() == 0 ? abs(of) : vectorNorm(f, of, 2, *dim, true);
    return of / (norm + f.detached(maximum(norm, norm.number(eps)) - norm));
  };
  Expr product = scaled(x) * scaled(y);
  return f.result(product.rank() == 0 ? product : sum(product, *dim, false));
}

FailureOr<Results> buildPairwiseDistance(Call &call) {
  Formula f(call);
  Expr x = f.tensor("x1"), y = f.tensor("x2");
  double p = f.real("p"), eps = f.real("eps");
  bool keepdim = f.flag("keepdim");
  if (f.failed())
    return failure();
  return f.result(distance(f, x, y, p, eps, keepdim));
}

namespace {
/// Along the last dim. Without a number added to the differences, unlike pairwise_distance.
FailureOr<Results> distances(Formula &f, Expr x, Expr y, double p) {
  Expr norm = distance(f, x, y, p, 0, false);
  if (!std::isinf(p) || aten::shapeOf(x.value).back() == 0)
    return f.result(norm);
  // Each of several largest differences has the whole derivative, as in PyTorch.
  Expr size = abs(x - y), largest = f.detached(norm);
  int64_t last = size.rank() - 1;
  Expr apart = size - unsqueeze(largest, last);
  Expr sums = sum(where(eq(size, unsqueeze(largest, last)), apart, 0), last, false);
  return f.result(where(lt(largest, kInfinity), largest + sums, norm));
}
} // namespace

FailureOr<Results> buildAllDistances(Call &call) {
  Formula f(call);
  Expr x = f.tensor("x1"), y = f.tensor("x2");
  double p = f.real("p");
  if (f.failed())
    return failure();
  return distances(f, unsqueeze(x, x.rank() - 1), unsqueeze(y, y.rank() - 2), p);
}

// Of each row to each that follows it.
FailureOr<Results> buildDistancesOfPairs(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self");
  double p = f.real("p", 2);
  if (f.failed())
    return failure();
  int64_t count = aten::shapeOf(x.value).front();
  constexpr int64_t kMost = 2048; // rows, of some 2^21 pairs
  if (ShapedType::isDynamic(count) || count > kMost)
    return call.error() << "needs a known number of rows, " << kMost << " at most";
  SmallVector<int64_t> first, second;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = i + 1; j < count; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  auto rows = [&](const SmallVector<int64_t> &at) {
    return f.op("aten.index_select", {{"self", {x.value}}, {"index", {aten::vectorOf(f.emit, at)}}},
                {call.integerAttr("dim", 0)});
  };
  return distances(f, rows(first), rows(second), p);
}

// Slices along a dim, made shorter where their norms are larger than one allows.
FailureOr<Results> buildRenormalised(Call &call) {
  Formula f(call);
  Expr x = f.floats("self");
  double p = f.real("p"), most = f.real("maxnorm");
  if (f.failed())
    return failure();
  Expr norm = normExcept(f, x, p, f.dim("dim", x.rank()));
  return f.result(x * where(gt(norm, most), norm.number(most) / (norm + 1e-7), 1));
}

// The norm of the difference of all elements.
FailureOr<Results> buildWholeDistance(Call &call) {
  Formula f(call);
  Expr x = f.floats("self"), y = f.floats("other");
  double p = f.real("p", 2);
  if (f.failed())
    return failure();
  Expr difference = x - y;
  return f.result(vectorNorm(f, view(difference, f.product(f.sizes(difference))), p, 0, false));
}

FailureOr<Results> buildCovariance(Call &call) {
  bool isCorrelation = call.schema.overload == "corrcoef.default";
  Formula f(call);
  Expr self = f.tensor("self");
  int64_t correction = isCorrelation ? 1 : f.integer("correction", 1);
  Type type = call.resultElementType();
  // That of one variable has no dims.
  FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
  if (f.failed() || !type || failed(shape))
    return failure();
  if (!isCorrelation && (!call.isNone("fweights") || !call.isNone("aweights")))
    return call.error() << "weights of observations are not supported: multiply by them before";
  Expr x = cast(self, type);
  while (x.rank() < 2)
    x = unsqueeze(x, 0);
  Expr centred = x - mean(x, 1);
  Expr count = f.number(f.sizes(x)[1], type);
  Expr norm = maximum(count - static_cast<double>(correction), count * 0);
  Expr result = tensordot(centred, centred, 1, 1) / norm;
  if (isCorrelation) {
    Expr isOwn = eq(view(f.range(f.sizes(x)[0]), {f.sizes(x)[0], f.one()}),
                    view(f.range(f.sizes(x)[0]), {f.one(), f.sizes(x)[0]}));
    Expr deviation = sqrt(sum(where(isOwn, result, 0), 1, false));
    if (shape->empty())
      return f.result(view(result / result, *shape));
    result = result / unsqueeze(deviation, 1) / unsqueeze(deviation, 0);
    result = f.op("aten.clamp", {{"self", {result.value}},
                                 {"min", {result.number(-1).value}},
                                 {"max", {result.number(1).value}}});
    return f.result(result);
  }
  return f.result(view(result, *shape));
}

// Between the elements in front of and behind a place of the sorted row.
FailureOr<Results> buildQuantile(Call &call) {
  bool leavesNaN = StringRef(call.schema.overload).starts_with("nanquantile");
  Formula f(call);
  Expr self = f.tensor("self");
  Type type = call.resultElementType();
  if (f.failed() || !type)
    return failure();
  Expr q = f.tensorOrNumber("q", type);
  StringRef between = f.text("interpolation");
  bool isWhole = call.isNone("dim"), isOne = q && q.rank() == 0;
  int64_t rank = self.rank();
  Expr row = isWhole ? view(self, f.product(f.sizes(self))) : self;
  int64_t dim = isWhole ? 0 : f.dim("dim", rank);
  if (f.failed())
    return failure();
  if (row.rank() == 0)
    row = unsqueeze(row, 0);
  // The row becomes the last dim.
  SmallVector<int64_t> order = dimRange(0, row.rank());
  order.erase(order.begin() + dim);
  order.push_back(dim);
  row = row.rank() > 1 ? f.permute(row, order) : row;
  int64_t last = row.rank() - 1;
  Expr sorted = f.of(aten::SortOp::create(call.builder, call.loc, row.value, last,
                                          /*descending=*/false, IntegerAttr())
                         .getValues());
  Expr isNone = isNaN(sorted), count = f.number(f.sizes(row)[last], type);
  if (leavesNaN)
    count = f.reduce("aten.sum", cast(logicalNot(isNone), type), last, true);
  if (isOne)
    q = unsqueeze(q, 0);
  Expr place = maximum(q * (count - 1), q * 0);
  auto rounded = [&](Expr x) {
    return between == "higher"    ? x.with(f.emit.unary<aten::CeilOp>(x.value))
           : between == "nearest" ? x.with(f.emit.unary<aten::RoundOp>(x.value))
                                  : x.with(f.emit.unary<aten::FloorOp>(x.value));
  };
  SmallVector<OpFoldResult> sizes = f.sizes(row);
  sizes[last] = f.sizes(q).front();
  auto at = [&](Expr position) {
    Expr whole = expand(cast(position, call.builder.getI64Type()), sizes);
    return f.of(aten::GatherOp::create(call.builder, call.loc, sorted.value, last, whole.value));
  };
  Expr below = rounded(place), result = at(below);
  if (between == "linear" || between == "midpoint") {
    Expr above = place.with(f.emit.unary<aten::CeilOp>(place.value));
    Expr part = between == "linear" ? place - below : place * 0 + 0.5;
    result = f.op("aten.lerp", {{"self", {result.value}},
                                {"end", {at(above).value}},
                                {"weight", {expand(part, sizes).value}}});
  }
  if (!leavesNaN) {
    Expr hasNone = f.reduce("aten.any", isNone, last, true);
    result = where(hasNone, std::numeric_limits<double>::quiet_NaN(), result);
  }
  // The dim of q comes first, or vanishes.
  FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
  if (failed(shape))
    return failure();
  if (!isOne && last > 0) {
    SmallVector<int64_t> front = dimRange(0, last);
    front.insert(front.begin(), last);
    result = f.permute(result, front);
  }
  return f.result(view(result, *shape));
}

// Sums of the means of neighbours times their distance: all, or those so far.
FailureOr<Results> buildTrapezoid(Call &call) {
  Formula f(call);
  Expr y = f.tensor("y"), x = call.schema.find("x") ? f.tensor("x") : Expr();
  if (f.failed())
    return failure();
  int64_t dim = f.dim("dim", y.rank());
  double step = x ? 1 : f.real("dx", 1);
  Type type = call.resultElementType();
  if (f.failed() || !type)
    return failure();
  auto at = [&](int64_t place) { return call.builder.getIndexAttr(place); };
  auto neighbours = [&](Expr of, int64_t along) {
    OpFoldResult length = f.sizes(of)[along];
    if (getConstantIntValue(length) == 0)
      return std::pair(of, of);
    OpFoldResult end = addSizes(call.builder, call.loc, length, at(-1));
    return std::pair(f.slice(of, along, at(0), end), f.slice(of, along, at(1), length));
  };
  y = cast(y, type);
  auto [left, right] = neighbours(y, dim);
  Expr area = (left + right) * 0.5;
  if (x) {
    x = cast(x, type);
    int64_t along = x.rank() == 1 ? 0 : dim - (y.rank() - x.rank());
    auto [from, to] = neighbours(x, along);
    Expr width = to - from;
    if (x.rank() == 1) {
      SmallVector<OpFoldResult> shape(y.rank(), f.one());
      shape[dim] = f.sizes(width).front();
      width = view(width, shape);
    }
    area = area * width;
  } else {
    area = area * step;
  }
  if (StringRef(call.schema.overload).starts_with("cumulative"))
    return f.result(f.op("aten.cumsum", {{"self", {area.value}}}, {call.integerAttr("dim", dim)}));
  return f.result(sum(area, dim, false));
}

} // namespace shardc::torch_export
