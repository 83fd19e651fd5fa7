// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that write at positions.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Writing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A number as a vector of one element.
Value asVector(Emitter &emit, Value x) {
  return aten::shapeOf(x).empty() ? emit.unsqueeze(x, 0) : x;
}

/// A write along one dim. Numbers (0-dim tensors) are vectors of one element here.
struct Scatter {
  Call &call;
  Value self, index;
  int64_t dim;
  bool isNumber;

  static FailureOr<Scatter> of(Call &call) {
    FailureOr<Value> self = call.tensor("self"), index = call.tensor("index");
    if (failed(self) || failed(index))
      return failure();
    FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
    if (failed(dim))
      return failure();
    Emitter emit(call.builder, call.loc);
    bool isNumber = aten::shapeOf(*self).empty();
    return Scatter{call, asVector(emit, *self), asVector(emit, *index), *dim, isNumber};
  }

  Type elementType() const { return aten::elementTypeOf(self); }

  /// Whether the index names one place in each row: each place is written at most once.
  bool writesOnce() const {
    ArrayRef<int64_t> have = aten::shapeOf(self), at = aten::shapeOf(index);
    if (isNumber || have.size() != at.size() || at[dim] != 1)
      return false;
    for (auto [i, sizes] : llvm::enumerate(llvm::zip_equal(have, at))) {
      auto [size, read] = sizes;
      if (static_cast<int64_t>(i) != dim && (size != read || ShapedType::isDynamic(size)))
        return false;
    }
    return true;
  }

  /// Whether an element of self is written, where each is written once at most: by comparison of
  /// positions, so that the dim may be sharded. An index outside of the dim writes nothing.
  Value isWritten() const {
    Emitter emit(call.builder, call.loc);
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, self);
    SmallVector<OpFoldResult> along(sizes.size(), call.builder.getIndexAttr(1));
    along[dim] = sizes[dim];
    Value start =
        getValueOrCreateConstantIndexOp(call.builder, call.loc, call.builder.getIndexAttr(0));
    Value length = getValueOrCreateConstantIndexOp(call.builder, call.loc, sizes[dim]);
    Value places =
        emit.view(emit.range(start, length, /*step=*/1, aten::elementTypeOf(index)), along);
    return emit.binary<aten::EqOp>(places, index);
  }

  /// A number for each element of the index.
  Value everywhere(Value number) const {
    Emitter emit(call.builder, call.loc);
    return emit.full(sizesOf(call.builder, call.loc, index), number);
  }

  /// The index names places in slices: a vector along `dim` of a tensor of the shape of `source`.
  FailureOr<Scatter> alongSlices(Value source) const {
    Emitter emit(call.builder, call.loc);
    SmallVector<OpFoldResult> sizes(aten::shapeOf(source).size(), call.builder.getIndexAttr(1));
    sizes[dim] = sizesOf(call.builder, call.loc, index).front();
    FailureOr<Value> whole = buildExpand(call.builder, call.loc, emit.view(index, sizes),
                                         sizesOf(call.builder, call.loc, source));
    if (failed(whole))
      return failure();
    return Scatter{call, self, *whole, dim, isNumber};
  }

  /// `target` with src written: "sum", or the ways of aten.scatter.
  FailureOr<Value> into(Value target, Value src, StringRef reduce) const {
    // Nothing is written, whatever the other sizes are.
    if (llvm::is_contained(aten::shapeOf(index), 0))
      return target;
    Emitter emit(call.builder, call.loc);
    src = asVector(emit, src);
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, index);
    ArrayRef<int64_t> read = aten::shapeOf(index), have = aten::shapeOf(src);
    if (read.size() != have.size())
      return call.error() << "index has " << read.size() << " dims and the source " << have.size();
    for (auto [i, size] : llvm::enumerate(sizes)) {
      if (read[i] == have[i] && !ShapedType::isDynamic(read[i]))
        continue;
      FailureOr<Value> part = buildSlice(call.builder, call.loc, src, static_cast<int64_t>(i),
                                         call.builder.getIndexAttr(0), size);
      if (failed(part))
        return failure();
      src = *part;
    }
    SmallVector<NamedAttribute> attributes{call.integerAttr("dim", dim)};
    if (reduce != "sum")
      attributes.push_back(call.builder.getNamedAttr("reduce", call.builder.getStringAttr(reduce)));
    return call.buildOne(reduce == "sum" ? "aten.scatter_add" : "aten.scatter",
                         {{"self", {target}}, {"index", {index}}, {"src", {src}}}, attributes);
  }

  /// In the shape of self.
  FailureOr<Results> result(FailureOr<Value> value) const {
    if (failed(value))
      return failure();
    Emitter emit(call.builder, call.loc);
    return Results{isNumber ? emit.view(*value, {}) : *value};
  }

  /// What changes nothing that it is combined with.
  Value identity(StringRef reduce) const {
    Emitter emit(call.builder, call.loc);
    Type type = elementType();
    if (reduce != "amax" && reduce != "amin")
      return emit.integer(reduce == "prod", type);
    bool isMax = reduce == "amax";
    if (isa<FloatType>(type))
      return emit.scalar(isMax ? -INFINITY : INFINITY, type);
    unsigned width = type.getIntOrFloatBitWidth();
    if (type.isInteger(1) || type.isUnsignedInteger())
      return emit.integer(isMax ? 0 : (width < 64 ? (int64_t{1} << width) - 1 : -1), type);
    return emit.integer(isMax ? llvm::minIntN(width) : llvm::maxIntN(width), type);
  }

  /// ATen's scatter_reduce.
  FailureOr<Value> reduced(Value src, StringRef reduce, bool includesSelf) const {
    Emitter emit(call.builder, call.loc);
    bool isMean = reduce == "mean";
    StringRef way = isMean ? "sum" : reduce;
    FailureOr<Value> start = self;
    if (!includesSelf)
      start = into(self, everywhere(identity(way)), "assign");
    if (failed(start))
      return failure();
    FailureOr<Value> total = into(*start, src, way);
    if (failed(total) || !isMean)
      return total;
    Value one = emit.integer(1, elementType());
    FailureOr<Value> count = emit.full(sizesOf(call.builder, call.loc, self), one);
    if (!includesSelf)
      count = into(*count, everywhere(emit.integer(0, elementType())), "assign");
    if (succeeded(count))
      count = into(*count, everywhere(one), "sum");
    if (failed(count))
      return failure();
    Value isNone = emit.binary<aten::LtOp>(*count, one);
    Value divisor = emit.where(isNone, one, *count);
    if (isa<FloatType>(elementType()))
      return emit.div(*total, divisor);
    return call.buildOne(
        "aten.div", {{"self", {*total}}, {"other", {divisor}}},
        {call.builder.getNamedAttr("rounding_mode", call.builder.getStringAttr("floor"))});
  }
};

/// The argument `reduce`, as aten.scatter and scatter_add call it.
FailureOr<StringRef> reductionOf(Call &call) {
  const Argument *argument = call.schema.find("reduce") ? call.find("reduce") : nullptr;
  if (!argument || std::holds_alternative<NoneArg>(*argument))
    return StringRef("assign");
  auto *name = std::get_if<std::string_view>(argument);
  StringRef text = name ? StringRef(*name) : StringRef();
  text = text == "add" ? "sum" : text == "multiply" ? "prod" : text;
  if (!llvm::is_contained({"sum", "prod", "mean", "amax", "amin"}, text))
    return call.error() << "there is no reduction '" << text << "'";
  return text;
}

} // namespace

FailureOr<Results> buildScatterValue(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<StringRef> reduce = reductionOf(call);
  if (failed(scatter) || failed(reduce))
    return failure();
  FailureOr<Value> value = call.scalar(*call.find("value"), scatter->elementType());
  if (failed(value))
    return failure();
  Emitter emit(call.builder, call.loc);
  if (*reduce == "assign" && scatter->writesOnce())
    return Results{emit.where(scatter->isWritten(), *value, scatter->self)};
  return scatter->result(scatter->into(scatter->self, scatter->everywhere(*value), *reduce));
}

FailureOr<Results> buildScatterSource(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<Value> source = call.tensor("src");
  FailureOr<StringRef> reduce = reductionOf(call);
  if (failed(scatter) || failed(source) || failed(reduce))
    return failure();
  Emitter emit(call.builder, call.loc);
  if (*reduce == "assign" && scatter->writesOnce() &&
      aten::shapeOf(*source) == aten::shapeOf(scatter->index))
    return Results{emit.where(scatter->isWritten(), *source, scatter->self)};
  return scatter->result(scatter->into(scatter->self, *source, *reduce));
}

FailureOr<Results> buildScatterAdd(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<Value> source = call.tensor("src");
  if (failed(scatter) || failed(source))
    return failure();
  return scatter->result(scatter->into(scatter->self, *source, "sum"));
}

FailureOr<Results> buildScatterReduce(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<Value> source = call.tensor("src");
  FailureOr<StringRef> reduce = reductionOf(call);
  FailureOr<bool> includesSelf = call.boolean("include_self");
  if (failed(scatter) || failed(source) || failed(reduce) || failed(includesSelf))
    return failure();
  return scatter->result(scatter->reduced(*source, *reduce, *includesSelf));
}

// Slices written, or combined, at the positions of a vector.
FailureOr<Results> buildIndexReduce(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<Value> source = call.tensor("source");
  FailureOr<StringRef> reduce = reductionOf(call);
  FailureOr<bool> includesSelf =
      call.schema.find("include_self") ? call.boolean("include_self") : true;
  if (failed(scatter) || failed(source) || failed(reduce) || failed(includesSelf))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value slices = asVector(emit, *source);
  FailureOr<Scatter> along = scatter->alongSlices(slices);
  if (failed(along))
    return failure();
  return along->result(*reduce == "assign" ? along->into(along->self, slices, *reduce)
                                           : along->reduced(slices, *reduce, *includesSelf));
}

FailureOr<Results> buildIndexFill(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  if (failed(scatter))
    return failure();
  const Argument &argument = *call.find("value");
  bool isTensor = std::holds_alternative<TensorArg>(argument);
  FailureOr<Value> value =
      isTensor ? call.tensor("value") : call.scalar(argument, scatter->elementType());
  if (failed(value))
    return failure();
  Emitter emit(call.builder, call.loc);
  return scatter->result(call.buildOne("aten.index_write",
                                       {{"self", {scatter->self}},
                                        {"indices", {scatter->index}},
                                        {"values", {emit.cast(*value, scatter->elementType())}}},
                                       {call.integersAttr("indices_at", scatter->dim)}));
}

namespace {

/// What a mask names, of dims `at` of self and some behind it: all by comparison, where the values
/// do not depend on how many elements the mask has.
FailureOr<Results> writeMasked(Call &call, Value self, Value mask, int64_t at, Value values,
                               bool adds) {
  Emitter emit(call.builder, call.loc);
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, mask);
  auto dims = static_cast<int64_t>(sizes.size());
  int64_t rest = aten::typeOf(self).getRank() - at - dims;
  if (rest < 0)
    return call.error() << "a mask of " << dims << " dims at dim " << at
                        << " has more dims than self";
  // Of values, one dim stands for those of the mask.
  SmallVector<OpFoldResult> given = sizesOf(call.builder, call.loc, values);
  if (auto chosen = static_cast<int64_t>(given.size()) - rest - 1; chosen >= 0) {
    if (getConstantIntValue(given[chosen]) != 1)
      return call.error() << "writes one value for each element of a mask, how many is known only "
                             "when the program runs: use torch.where or masked_scatter";
    given.erase(given.begin() + chosen);
    given.insert(given.begin() + chosen, dims, call.builder.getIndexAttr(1));
    values = emit.view(values, given);
  }
  sizes.append(rest, call.builder.getIndexAttr(1));
  Value isWritten = rest == 0 ? mask : emit.view(mask, sizes);
  return Results{emit.where(isWritten, adds ? emit.add(self, values) : values, self)};
}

} // namespace

FailureOr<Results> buildIndexPut(Call &call) {
  FailureOr<bool> adds = call.boolean("accumulate");
  FailureOr<SmallVector<Value>> indices = call.tensors("indices");
  FailureOr<Value> self = call.tensor("self"), values = call.tensor("values");
  if (failed(adds) || failed(indices) || failed(self) || failed(values))
    return failure();
  SmallVector<int64_t> at;
  SmallVector<Value> present;
  for (auto [dim, index] : llvm::enumerate(*indices))
    if (index) {
      at.push_back(static_cast<int64_t>(dim));
      present.push_back(index);
      if (aten::elementTypeOf(index).isUnsignedInteger(8))
        return call.error() << "an index of bytes, which is a mask to PyTorch, is not supported: "
                               "make it a bool tensor";
    }
  auto isMask = [](Value index) { return aten::elementTypeOf(index).isInteger(1); };
  if (llvm::any_of(present, isMask)) {
    if (present.size() > 1)
      return call.error() << "a mask beside other indices is not supported: use its positions, or "
                             "torch.where";
    return writeMasked(call, *self, present.front(), at.front(), *values, *adds);
  }
  if (*adds)
    return buildByName(call, "aten.index_put");
  if (present.empty()) {
    FailureOr<Value> whole =
        buildExpand(call.builder, call.loc, *values, sizesOf(call.builder, call.loc, *self));
    if (failed(whole))
      return failure();
    return one(buildOverwritten(call.builder, call.loc, *self, *whole));
  }
  return one(call.buildOne("aten.index_write",
                           {{"self", {*self}}, {"indices", present}, {"values", {*values}}},
                           {call.integersAttr("indices_at", at)}));
}

/// The elements of a tensor, row by row.
static Value asVector(Call &call, Value x) {
  OpFoldResult count = call.builder.getIndexAttr(1);
  for (OpFoldResult size : sizesOf(call.builder, call.loc, x))
    count = multiplySizes(call.builder, call.loc, count, size);
  return Emitter(call.builder, call.loc).view(x, count);
}

// The elements of the source, one after the other, where the mask holds.
FailureOr<Results> buildMaskedScatter(Call &call) {
  FailureOr<Value> self = call.tensor("self"), mask = call.tensor("mask"),
                   source = call.tensor("source");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(mask) || failed(source) || failed(sizes))
    return failure();
  FailureOr<Value> whole = buildExpand(call.builder, call.loc, *self, *sizes),
                   where = buildExpand(call.builder, call.loc, *mask, *sizes);
  if (failed(whole) || failed(where))
    return failure();
  Emitter emit(call.builder, call.loc);
  auto vector = [&](Value x) { return asVector(call, x); };
  Value elements = vector(*source);
  if (aten::shapeOf(elements).front() == 0)
    return Results{*whole};
  Type i64 = call.builder.getI64Type();
  Value holds = vector(*where);
  FailureOr<Value> counted = call.buildOne(
      "aten.cumsum", {{"self", {holds}}},
      {call.integerAttr("dim", 0), call.builder.getNamedAttr("dtype", TypeAttr::get(i64))});
  if (failed(counted))
    return failure();
  Value place = emit.where(holds, emit.sub(*counted, emit.integer(1, i64)), emit.integer(0, i64));
  FailureOr<Value> read =
      call.buildOne("aten.index_select", {{"self", {elements}}, {"index", {place}}},
                    {call.integerAttr("dim", 0)});
  if (failed(read))
    return failure();
  return Results{emit.where(*where, emit.view(*read, *sizes), *whole)};
}

// Elements of the tensor as a vector.
FailureOr<Results> buildPut(Call &call) {
  FailureOr<Value> self = call.tensor("self"), index = call.tensor("index"),
                   source = call.tensor("source");
  FailureOr<bool> adds = call.boolean("accumulate");
  if (failed(self) || failed(index) || failed(source) || failed(adds))
    return failure();
  Emitter emit(call.builder, call.loc);
  auto vector = [&](Value x) { return asVector(call, x); };
  SmallVector<aten::NamedOperand> operands = {
      {"self", {vector(*self)}}, {"indices", {vector(*index)}}, {"values", {vector(*source)}}};
  SmallVector<NamedAttribute> attributes = {call.integersAttr("indices_at", 0)};
  if (*adds)
    attributes.push_back(call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr()));
  FailureOr<Value> written =
      call.buildOne(*adds ? "aten.index_put" : "aten.index_write", operands, attributes);
  if (failed(written))
    return failure();
  return Results{emit.view(*written, sizesOf(call.builder, call.loc, *self))};
}

// A diagonal of two dims, which are the last one of src.
FailureOr<Results> buildDiagonalScatter(Call &call) {
  FailureOr<Value> self = call.tensor("self"), src = call.tensor("src");
  FailureOr<std::optional<int64_t>> offset = call.integer("offset");
  if (failed(self) || failed(src) || failed(offset))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  FailureOr<int64_t> dim1 = call.dimArgument("dim1", rank), dim2 = call.dimArgument("dim2", rank);
  if (failed(dim1) || failed(dim2))
    return failure();
  int64_t length = aten::shapeOf(*src).back(), above = offset->value_or(0);
  if (ShapedType::isDynamic(length))
    return call.error() << "a diagonal of unknown length is not supported";
  auto positions = [&](int64_t first) {
    return call.buildOne(
        "aten.arange", {},
        {call.integerAttr("static_start", first), call.integerAttr("static_end", first + length),
         call.builder.getNamedAttr("dtype", TypeAttr::get(call.builder.getI64Type()))});
  };
  FailureOr<Value> rows = positions(std::max<int64_t>(-above, 0)),
                   columns = positions(std::max<int64_t>(above, 0));
  if (failed(rows) || failed(columns))
    return failure();
  if (*dim1 > *dim2) {
    std::swap(*dim1, *dim2);
    std::swap(*rows, *columns);
  }
  // What indices read stands in the place of adjacent dims, and else in front.
  int64_t place = *dim2 == *dim1 + 1 ? *dim1 : 0;
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  order.insert(order.begin() + place, rank - 2);
  FailureOr<Value> values =
      call.buildOne("aten.permute", {{"self", {*src}}}, {call.integersAttr("dims", order)});
  if (failed(values))
    return failure();
  return one(
      call.buildOne("aten.index_write",
                    {{"self", {*self}}, {"indices", {*rows, *columns}}, {"values", {*values}}},
                    {call.integersAttr("indices_at", {*dim1, *dim2})}));
}

// Slices added at the positions of a vector.
FailureOr<Results> buildIndexAdd(Call &call) {
  FailureOr<Value> self = call.tensor("self"), index = call.tensor("index"),
                   source = call.tensor("source");
  if (failed(self) || failed(index) || failed(source))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  FailureOr<Value> alpha = call.scalar(*call.find("alpha"), aten::elementTypeOf(*source));
  if (failed(dim) || failed(alpha))
    return failure();
  Emitter emit(call.builder, call.loc);
  bool isPlain = asReal(*call.find("alpha")) == 1.0, isNumber = aten::typeOf(*self).getRank() == 0;
  Value whole = *self, added = isPlain ? *source : emit.mul(*source, *alpha), at = *index;
  if (isNumber) { // an element alone
    OpFoldResult one = call.builder.getIndexAttr(1);
    whole = emit.view(whole, one);
    added = emit.view(added, one);
    at = emit.view(at, one);
  }
  FailureOr<Value> sum =
      call.buildOne("aten.index_put", {{"self", {whole}}, {"indices", {at}}, {"values", {added}}},
                    {call.integersAttr("indices_at", *dim),
                     call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
  if (failed(sum))
    return failure();
  return Results{isNumber ? emit.view(*sum, {}) : *sum};
}

} // namespace shardc::torch_export
