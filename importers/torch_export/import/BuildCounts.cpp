// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that count values, and those of which a result is as long as the values of tensors say.
#include "importers/torch_export/import/Formula.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A vector of zeros of this length to which `values` are added at `places`, which has their shape.
FailureOr<Value> addedAt(Call &call, OpFoldResult length, Value places, Value values) {
  Emitter emit(call.builder, call.loc);
  Value zeros = emit.zeros(length, aten::elementTypeOf(values));
  return call.buildOne("aten.index_put",
                       {{"self", {zeros}}, {"indices", {places}}, {"values", {values}}},
                       {call.integersAttr("indices_at", 0),
                        call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
}

/// The bounds of a histogram as numbers of the element type: those given, or, where these are
/// equal, the least and the largest element. Equal ones are moved apart.
struct Bounds {
  Emitter &emit;
  Type type;
  Value low, high;
  bool areGiven = false; ///< so that they are finite

  Value number(double x) {
    return isa<FloatType>(type) ? emit.scalar(x, type)
                                : emit.integer(static_cast<int64_t>(x), type);
  }

  LogicalResult find(Call &call, Value self) {
    FailureOr<std::optional<double>> min = call.real("min"), max = call.real("max");
    if (failed(min) || failed(max))
      return failure();
    double least = **min, most = **max;
    if (!std::isfinite(least) || !std::isfinite(most) || least > most)
      return call.error() << "min and max must be finite, and max not less than min";
    // Of no elements there are no extremes.
    areGiven = least != most || llvm::is_contained(aten::shapeOf(self), 0);
    double apart = least == most ? 1 : 0;
    low = number(least - apart);
    high = number(most + apart);
    if (areGiven)
      return success();
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(aten::typeOf(self).getRank()));
    low = dims.empty() ? self : emit.amin(self, dims, /*keepdim=*/false);
    high = dims.empty() ? self : emit.amax(self, dims, /*keepdim=*/false);
    Value areEqual = emit.binary<aten::EqOp>(low, high), one = number(1);
    Value lower = emit.sub(low, one), higher = emit.add(high, one);
    low = emit.where(areEqual, lower, low);
    high = emit.where(areEqual, higher, high);
    return success();
  }

  /// Whether both are finite, as a tensor.
  Value areFinite() {
    Value none = emit.add(emit.sub(low, low), emit.sub(high, high));
    return emit.binary<aten::EqOp>(none, number(0));
  }
};

} // namespace

// Elements outside of the bounds, and NaN, are not counted. Bounds that are not finite are an
// error of the run: then every element is counted behind the last place.
FailureOr<Results> buildHistc(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<int64_t>> bins = call.integer("bins");
  Type resultType = call.resultElementType();
  if (failed(self) || failed(bins) || !resultType)
    return failure();
  Emitter emit(call.builder, call.loc);
  Type type = aten::elementTypeOf(*self), i64 = call.builder.getI64Type();
  bool isFloat = isa<FloatType>(type);
  Value x = emit.cast(*self, isFloat ? Emitter::accumulator(type) : i64);
  Bounds bounds{emit, aten::elementTypeOf(x), {}, {}};
  if (failed(bounds.find(call, x)))
    return failure();
  Value inside = emit.binary<aten::LogicalAndOp>(emit.binary<aten::GeOp>(x, bounds.low),
                                                 emit.binary<aten::LeOp>(x, bounds.high));
  Value scaled = emit.mul(emit.sub(x, bounds.low), bounds.number(static_cast<double>(**bins)));
  Value width = emit.sub(bounds.high, bounds.low);
  Value place;
  if (isFloat)
    place = emit.div(scaled, width);
  else
    place = aten::DivOp::create(call.builder, call.loc, scaled, width,
                                call.builder.getStringAttr("trunc"));
  Value none = bounds.number(0), last = emit.integer(**bins - 1, i64);
  place = emit.cast(emit.where(inside, place, none), i64);
  place = emit.binary<aten::MinimumOp>(place, last);
  if (isFloat && !bounds.areGiven)
    place = emit.where(bounds.areFinite(), place, emit.integer(**bins, i64));
  FailureOr<Value> counts =
      addedAt(call, call.builder.getIndexAttr(**bins), place, emit.cast(inside, i64));
  if (failed(counts))
    return failure();
  return Results{emit.cast(*counts, resultType)};
}

// A value that is not among the places is an error of the run.
FailureOr<Results> buildBincount(Call &call) {
  FailureOr<Value> self = call.tensor("self"), weights = call.tensor("weights");
  if (failed(self) || failed(weights))
    return failure();
  FailureOr<SmallVector<OpFoldResult>> length = failure();
  {
    ScopedDiagnosticHandler silent(call.builder.getContext(),
                                   [](Diagnostic &) { return success(); });
    length = call.resultSizes();
  }
  if (failed(length))
    return call.error() << "how long its result is depends on the values that it counts: say so "
                           "behind it, torch._check(counts.shape[0] == N) with a number or a size "
                           "of an input, or use torch.histc(x, N, 0, N - 1)";
  Emitter emit(call.builder, call.loc);
  Type i64 = call.builder.getI64Type();
  Value values = *weights;
  if (!values)
    values = emit.full(sizesOf(call.builder, call.loc, *self), emit.integer(1, i64));
  else if (Type type = call.resultElementType())
    values = emit.cast(values, type);
  // Negative ones do not count from the end.
  Value places = emit.cast(*self, i64), zero = emit.integer(0, i64);
  OpFoldResult count = length->front();
  std::optional<int64_t> fixed = getConstantIntValue(count);
  Value behind = fixed ? emit.integer(*fixed, i64) : emit.ofIndex(cast<Value>(count), i64);
  places = emit.where(emit.binary<aten::LtOp>(places, zero), behind, places);
  return one(addedAt(call, count, places, values));
}

// The positions of the first elements that are not 0, a row for each, of a given number of rows. An
// element goes to the place that is as many as there are before it; those that have no row, to one
// behind all rows.
FailureOr<Results> buildFirstNonzero(Call &call) {
  Formula f(call);
  Expr self = f.tensor("self");
  int64_t fill = f.integer("fill_value", -1);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (f.failed() || failed(sizes))
    return failure();
  Type i64 = call.builder.getI64Type();
  Expr none = f.of(f.emit.integer(fill, i64));
  if (self.rank() == 0)
    return Results{f.emit.full(*sizes, none.value)};
  OpFoldResult rows = sizes->front();
  SmallVector<OpFoldResult> shape = f.sizes(self);
  OpFoldResult count = f.product(shape);
  Expr flat = view(self, count), wanted = f.number(rows, i64);
  Expr isIt = f.of(f.emit.binary<aten::NeOp>(flat.value, flat.number(0).value));
  Expr row =
      f.op("aten.cumsum", {{"self", {cast(isIt, i64).value}}}, {call.integerAttr("dim", 0)}) - 1;
  row = where(logicalAnd(isIt, lt(row, wanted)), row, wanted);
  OpFoldResult withRest = addSizes(call.builder, call.loc, rows, f.one());
  Expr places = f.of(f.emit.full(withRest, f.emit.integer(-1, i64)));
  places = f.op("aten.scatter",
                {{"self", {places.value}}, {"index", {row.value}}, {"src", {f.range(count).value}}},
                {call.integerAttr("dim", 0),
                 call.builder.getNamedAttr("reduce", call.builder.getStringAttr("assign"))});
  Expr place = f.slice(places, 0, call.builder.getIndexAttr(0), rows);
  if (f.failed())
    return failure();
  Expr isThere = ge(place, 0);
  SmallVector<Value> columns(shape.size());
  Expr rest = place;
  for (size_t dim = shape.size(); dim-- > 0;) {
    Expr size = f.number(shape[dim], i64), next = roundedQuotient(rest, size, "floor");
    columns[dim] = unsqueeze(where(isThere, rest - next * size, none), 1).value;
    rest = next;
  }
  return f.result(f.op("aten.cat", {{"tensors", columns}}, {call.integerAttr("dim", 1)}));
}

FailureOr<Results> buildOfUnknownLength(Call &call) {
  StringRef packet = StringRef(call.schema.overload).split('.').first;
  StringRef instead =
      llvm::StringSwitch<StringRef>(packet)
          .Cases({"nonzero", "nonzero_numpy", "argwhere"},
                 "use torch.nonzero_static, or torch.where with three arguments")
          .Case("masked_select", "use torch.where, or multiply by the mask")
          .Case("repeat_interleave", "give output_size, and a dim of a known size")
          .Default("use torch.sort, and compare neighbours; or count with torch.histc");
  return call.error() << "how long its result is depends on the values of its operands, which is "
                         "not supported: "
                      << instead;
}

// Whether each element is one of those of another tensor.
FailureOr<Results> buildIsIn(Call &call) {
  Formula f(call);
  StringRef overload = StringRef(call.schema.overload).split('.').second;
  bool isNumber = overload == "Scalar_Tensor", isOfNumber = overload == "Tensor_Scalar";
  Expr tensor = f.tensor(isNumber ? "test_elements" : "elements");
  bool isInverted = f.flag("invert");
  if (f.failed())
    return failure();
  Expr elements = tensor, among = tensor;
  if (isNumber || isOfNumber) {
    StringRef name = isNumber ? "element" : "test_element";
    // Integers are compared with a fraction in the default type of floats.
    bool isWhole = !std::holds_alternative<double>(*call.find(name));
    Type type = isWhole || isa<FloatType>(tensor.elementType()) ? tensor.elementType()
                                                                : call.builder.getF32Type();
    elements = among = cast(tensor, type);
    (isNumber ? elements : among) = f.tensorOrNumber(name, type);
  } else {
    among = f.tensor("test_elements");
  }
  if (f.failed())
    return failure();
  among = view(among, {f.product(f.sizes(among))});
  Expr found = eq(unsqueeze(elements, elements.rank()), among);
  found = f.op("aten.any", {{"self", {found.value}}}, {call.integersAttr("dim", found.rank() - 1)});
  return f.result(isInverted ? logicalNot(found) : found);
}

} // namespace shardc::torch_export
