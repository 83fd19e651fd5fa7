// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that sort, and that look positions up in what is sorted.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Formula.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A tensor that is sorted along a dim. A number (0-dim tensor) is a vector of one element here.
struct Sort {
  Call &call;
  Value self;
  int64_t dim;
  bool isNumber;

  static FailureOr<Sort> of(Call &call) {
    FailureOr<Value> self = call.tensor("self");
    if (failed(self))
      return failure();
    int64_t rank = aten::typeOf(*self).getRank();
    FailureOr<int64_t> dim = call.schema.find("dim") ? call.dimArgument("dim", rank) : 0;
    if (failed(dim))
      return failure();
    Emitter emit(call.builder, call.loc);
    return Sort{call, rank == 0 ? emit.unsqueeze(*self, 0) : *self, *dim, rank == 0};
  }

  /// Values and positions, the first `count` of them or all.
  FailureOr<Results> build(bool descending, std::optional<int64_t> count = std::nullopt) const {
    SmallVector<NamedAttribute> attributes{call.integerAttr("dim", dim)};
    if (descending)
      attributes.push_back(call.builder.getNamedAttr("descending", call.builder.getUnitAttr()));
    if (count)
      attributes.push_back(call.integerAttr("count", *count));
    FailureOr<Operation *> op = call.build("aten.sort", {{"self", {self}}}, attributes);
    if (failed(op))
      return failure();
    return Results((*op)->getResults());
  }

  FailureOr<Results> whole(FailureOr<Results> results) const {
    if (failed(results) || !isNumber)
      return results;
    Emitter emit(call.builder, call.loc);
    for (Value &result : *results)
      result = emit.view(result, {});
    return results;
  }

  /// One position of each row, where `keepdim` with a dim of size 1 left.
  FailureOr<Value> at(Value sorted, int64_t position, bool keepdim) const {
    if (keepdim && !isNumber)
      return buildSlice(call.builder, call.loc, sorted, dim, call.builder.getIndexAttr(position),
                        call.builder.getIndexAttr(position + 1));
    return call.buildOne(
        "aten.select", {{"self", {sorted}}},
        {call.integerAttr("dim", dim), call.integerAttr("static_index", position)});
  }
};

FailureOr<Results> sortAll(Call &call) {
  FailureOr<Sort> sort = Sort::of(call);
  FailureOr<bool> descending = call.schema.find("descending") ? call.boolean("descending") : false;
  if (failed(sort) || failed(descending))
    return failure();
  return sort->whole(sort->build(*descending));
}

} // namespace

// Stable where that is not asked for, too.
FailureOr<Results> buildSort(Call &call) { return sortAll(call); }

FailureOr<Results> buildArgsort(Call &call) {
  FailureOr<Results> results = sortAll(call);
  if (failed(results))
    return failure();
  return Results{results->back()};
}

FailureOr<Results> buildSortFirst(Call &call) {
  FailureOr<Results> results = sortAll(call);
  if (failed(results))
    return failure();
  return Results{results->front()};
}

FailureOr<Results> buildTopk(Call &call) {
  FailureOr<Sort> sort = Sort::of(call);
  FailureOr<std::optional<int64_t>> count = call.integer("k");
  FailureOr<bool> largest = call.boolean("largest");
  if (failed(sort) || failed(count) || failed(largest))
    return failure();
  return sort->isNumber && **count == 1 ? sort->whole(sort->build(*largest))
                                        : sort->build(*largest, **count);
}

FailureOr<Results> buildKthValue(Call &call) {
  FailureOr<Sort> sort = Sort::of(call);
  FailureOr<std::optional<int64_t>> k = call.integer("k");
  FailureOr<bool> keepdim = call.boolean("keepdim");
  if (failed(sort) || failed(k) || failed(keepdim))
    return failure();
  if (**k < 1)
    return call.error() << "k counts from 1";
  FailureOr<Results> sorted = sort->build(/*descending=*/false, **k);
  if (failed(sorted))
    return failure();
  Results results;
  for (Value all : *sorted) {
    FailureOr<Value> one = sort->at(all, **k - 1, *keepdim);
    if (failed(one))
      return failure();
    results.push_back(*one);
  }
  return results;
}

namespace {

/// A median: along a dim, with its position, or of all elements.
struct Median {
  Sort sort;
  bool isWhole, keepdim;

  static FailureOr<Median> of(Call &call) {
    FailureOr<Sort> sort = Sort::of(call);
    if (failed(sort))
      return failure();
    bool isWhole = !call.schema.find("dim");
    FailureOr<bool> keepdim = isWhole ? false : call.boolean("keepdim");
    if (failed(keepdim))
      return failure();
    Emitter emit(call.builder, call.loc);
    RankedTensorType type = aten::typeOf(sort->self);
    int64_t size = type.getDimSize(sort->dim);
    if (isWhole) {
      size = type.hasStaticShape() ? type.getNumElements() : ShapedType::kDynamic;
      if (type.hasStaticShape())
        sort->self = emit.view(sort->self, {call.builder.getIndexAttr(size)});
      sort->isNumber = false;
    }
    if (ShapedType::isDynamic(size) || size <= 0)
      return call.error() << "a median is supported of a known number of elements, at least one";
    return Median{*sort, isWhole, *keepdim};
  }

  int64_t size() const { return aten::shapeOf(sort.self)[sort.dim]; }
  bool isFloat() const { return isa<FloatType>(aten::elementTypeOf(sort.self)); }

  /// The number, with a derivative that all elements share which are equal to it.
  Value shared(Value number) const {
    Emitter emit(sort.call.builder, sort.call.loc);
    Type type = aten::elementTypeOf(number), wide = Emitter::accumulator(type);
    auto isNaN = [&](Value x) { return emit.unary<aten::IsnanOp>(x); };
    number = Formula(sort.call).detached({number, &emit}).value;
    Value bothNaN = emit.binary<aten::LogicalAndOp>(isNaN(sort.self), isNaN(number));
    Value isIt =
        emit.binary<aten::LogicalOrOp>(emit.binary<aten::EqOp>(sort.self, number), bothNaN);
    Value x = emit.cast(sort.self, wide), chosen = emit.cast(number, wide);
    Value count = emit.sum(emit.cast(isIt, wide), sort.dim, /*keepdim=*/false);
    auto mean = [&](Value of) {
      Value those = emit.where(isIt, of, emit.scalar(0, wide));
      return emit.div(emit.sum(those, sort.dim, /*keepdim=*/false), count);
    };
    // Of what is finite the differences, which are 0, so that the number stays as it is.
    Value isEdge = emit.binary<aten::LogicalOrOp>(emit.unary<aten::IsinfOp>(number), isNaN(number));
    Value near = emit.add(chosen, mean(emit.sub(x, chosen)));
    return emit.cast(emit.where(isEdge, mean(x), near), type);
  }

  /// `choose` takes one element of each row of what was sorted: the values, then the positions.
  template <typename Choose> FailureOr<Results> build(Choose choose) const {
    FailureOr<Results> sorted = sort.build(/*descending=*/false);
    if (failed(sorted))
      return failure();
    Results results;
    for (Value all : *sorted) {
      FailureOr<Value> chosen = choose(sorted->front(), all);
      if (failed(chosen))
        return failure();
      results.push_back(*chosen);
    }
    if (!isWhole)
      return results;
    results.pop_back();
    if (isFloat())
      results.front() = shared(results.front());
    return results;
  }
};

} // namespace

// The lower one of the two in the middle, or NaN where there is one: it is sorted to the end.
FailureOr<Results> buildMedian(Call &call) {
  FailureOr<Median> median = Median::of(call);
  if (failed(median))
    return failure();
  Emitter emit(call.builder, call.loc);
  auto at = [&](Value sorted, int64_t place) {
    return median->sort.at(sorted, place, median->keepdim);
  };
  int64_t last = median->size() - 1;
  return median->build([&](Value values, Value all) -> FailureOr<Value> {
    FailureOr<Value> middle = at(all, last / 2), end = at(all, last), largest = at(values, last);
    if (failed(middle) || failed(end) || failed(largest))
      return failure();
    return median->isFloat() ? emit.where(emit.unary<aten::IsnanOp>(*largest), *end, *middle)
                             : *middle;
  });
}

// Likewise, of the elements in front of the first NaN, or NaN where there is nothing else.
FailureOr<Results> buildMedianOfNumbers(Call &call) {
  FailureOr<Median> median = Median::of(call);
  if (failed(median))
    return failure();
  if (!median->isFloat())
    return buildMedian(call);
  Emitter emit(call.builder, call.loc);
  Type i64 = call.builder.getI64Type();
  int64_t dim = median->sort.dim;
  Value isNumber = emit.unary<aten::LogicalNotOp>(emit.unary<aten::IsnanOp>(median->sort.self));
  Value last =
      emit.sub(emit.sum(emit.cast(isNumber, i64), dim, /*keepdim=*/true), emit.integer(1, i64));
  Value middle = aten::DivOp::create(call.builder, call.loc, last, emit.integer(2, i64),
                                     call.builder.getStringAttr("trunc"));
  return median->build([&](Value, Value all) -> FailureOr<Value> {
    Value chosen = aten::GatherOp::create(call.builder, call.loc, all, dim, middle);
    if (median->keepdim && !median->sort.isNumber)
      return chosen;
    return aten::SqueezeOp::create(call.builder, call.loc, chosen, ArrayRef<int64_t>{dim})
        .getResult();
  });
}

namespace {

/// The tensor or number whose place is looked up. A number with a fraction stays one beside
/// integers: both are compared as floats.
FailureOr<Value> soughtValues(Call &call, const Argument &argument, Value bounds) {
  if (std::holds_alternative<TensorArg>(argument))
    return call.tensor("self");
  Type type = aten::elementTypeOf(bounds);
  if (std::holds_alternative<double>(argument) && !isa<FloatType>(type))
    type = call.builder.getF32Type();
  return call.scalar(argument, type);
}

/// How many of the boundaries, along the last dim of `bounds`, are in front of each value.
FailureOr<Results> countBefore(Call &call, Value bounds, Value values) {
  FailureOr<bool> right = call.boolean("right"), isNarrow = call.boolean("out_int32");
  if (failed(right) || failed(isNarrow))
    return failure();
  Emitter emit(call.builder, call.loc);
  // Values may be NaN, and are behind all boundaries then.
  Value isBehind =
      *right ? emit.binary<aten::GtOp>(bounds, values) : emit.binary<aten::GeOp>(bounds, values);
  Value isBefore = emit.unary<aten::LogicalNotOp>(isBehind);
  int64_t rank = aten::typeOf(isBefore).getRank();
  Value count =
      emit.sum(emit.cast(isBefore, call.builder.getI64Type()), {rank - 1}, /*keepdim=*/false);
  return Results{*isNarrow ? emit.cast(count, call.builder.getI32Type()) : count};
}

} // namespace

FailureOr<Results> buildBucketize(Call &call) {
  const Argument &argument = *call.find("self");
  FailureOr<Value> bounds = call.tensor("boundaries");
  if (failed(bounds))
    return failure();
  FailureOr<Value> values = soughtValues(call, argument, *bounds);
  if (failed(values))
    return failure();
  Emitter emit(call.builder, call.loc);
  return countBefore(call, *bounds, emit.unsqueeze(*values, aten::typeOf(*values).getRank()));
}

FailureOr<Results> buildSearchSorted(Call &call) {
  FailureOr<Value> bounds = call.tensor("sorted_sequence"), sorter = call.tensor("sorter");
  const Argument &argument = *call.find("self");
  if (failed(bounds) || failed(sorter))
    return failure();
  if (*sorter || !call.isNone("side"))
    return call.error()
           << "'sorter' and 'side' are not supported: sort the sequence before, and say "
              "'right'";
  FailureOr<Value> values = soughtValues(call, argument, *bounds);
  if (failed(values))
    return failure();
  Emitter emit(call.builder, call.loc);
  int64_t rank = aten::typeOf(*bounds).getRank();
  Value rows = rank > 1 ? emit.unsqueeze(*bounds, rank - 1) : *bounds;
  return countBefore(call, rows, emit.unsqueeze(*values, aten::typeOf(*values).getRank()));
}

FailureOr<Results> buildCountNonzero(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  Emitter emit(call.builder, call.loc);
  Type type = aten::elementTypeOf(*self);
  Value isSet = type.isInteger(1) ? *self : emit.binary<aten::NeOp>(*self, emit.integer(0, type));
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (call.schema.find("dim") && !call.isNone("dim")) {
    if (call.schema.overload == "count_nonzero.default") {
      FailureOr<int64_t> dim = call.dimArgument("dim", rank);
      if (failed(dim))
        return failure();
      dims = {*dim};
    } else {
      FailureOr<std::optional<SmallVector<int64_t>>> given = call.integers("dim");
      if (failed(given))
        return failure();
      if (*given && !(*given)->empty())
        dims.clear();
      for (int64_t value : **given) {
        FailureOr<int64_t> dim = call.dim(value, rank);
        if (failed(dim))
          return failure();
        dims.push_back(*dim);
      }
    }
  }
  Value counted = emit.cast(isSet, call.builder.getI64Type());
  return Results{rank == 0 ? counted : emit.sum(counted, dims, /*keepdim=*/false)};
}

/// Which element of a dim of `size` elements comes first where it is rolled by `shift`.
static OpFoldResult firstOfRolled(Call &call, OpFoldResult size, int64_t shift) {
  if (std::optional<int64_t> known = getConstantIntValue(size))
    return call.builder.getIndexAttr(*known == 0 ? 0 : ((-shift) % *known + *known) % *known);
  auto number = [&](int64_t value) {
    return arith::ConstantIndexOp::create(call.builder, call.loc, value).getResult();
  };
  // An empty dim is rolled as one of a single element.
  Value count = arith::MaxSIOp::create(call.builder, call.loc, cast<Value>(size), number(1));
  Value rest = arith::RemSIOp::create(call.builder, call.loc, number(-shift), count);
  Value positive = arith::AddIOp::create(call.builder, call.loc, rest, count);
  return arith::RemSIOp::create(call.builder, call.loc, positive, count).getResult();
}

// Two parts of each dim change places.
FailureOr<Results> buildRoll(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<SmallVector<int64_t>>> shifts = call.integers("shifts"),
                                                 dims = call.integers("dims");
  if (failed(self) || failed(shifts) || failed(dims))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value result = *self;
  int64_t rank = aten::typeOf(*self).getRank();
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, *self);
  SmallVector<int64_t> along = dims->value_or(SmallVector<int64_t>());
  bool isFlat = along.empty();
  if (isFlat && rank == 0)
    return Results{emit.unary<aten::CloneOp>(*self)};
  if (isFlat) {
    if (!aten::typeOf(*self).hasStaticShape())
      return call.error() << "without 'dims' it is supported for known sizes only";
    result = emit.view(*self, {call.builder.getIndexAttr(aten::typeOf(*self).getNumElements())});
    along = {0};
  }
  for (auto [shift, given] : llvm::zip_equal(**shifts, along)) {
    FailureOr<int64_t> dim = call.dim(given, isFlat ? 1 : rank);
    if (failed(dim))
      return failure();
    OpFoldResult size = sizesOf(call.builder, call.loc, result)[*dim];
    OpFoldResult begin = firstOfRolled(call, size, shift);
    if (getConstantIntValue(begin) == 0)
      continue;
    OpFoldResult zero = call.builder.getIndexAttr(0);
    FailureOr<Value> first = buildSlice(call.builder, call.loc, result, *dim, begin, size),
                     last = buildSlice(call.builder, call.loc, result, *dim, zero, begin);
    if (failed(first) || failed(last))
      return failure();
    result = emit.cat({*first, *last}, *dim);
  }
  if (isFlat)
    result = emit.view(result, sizes);
  else if (result == *self)
    result = emit.unary<aten::CloneOp>(*self);
  return Results{result};
}

// Rows and columns of a triangle of a matrix, in row-major order.
FailureOr<Results> buildTriangleIndices(Call &call) {
  FailureOr<std::optional<int64_t>> rows = call.integer("row"), columns = call.integer("col"),
                                    offset = call.integer("offset");
  if (failed(rows) || failed(columns) || failed(offset))
    return failure();
  bool isLower = StringRef(call.schema.overload).starts_with("tril");
  auto type = cast<IntegerType>(call.resultElementType());
  // The columns [begin, end) of each row.
  auto columnsOf = [&](int64_t row) {
    int64_t split = std::clamp<int64_t>(row + **offset + (isLower ? 1 : 0), 0, **columns);
    return isLower ? std::pair(int64_t(0), split) : std::pair(split, **columns);
  };
  SmallVector<APInt> numbers[2];
  for (int64_t i = 0; i < **rows; ++i) {
    auto [begin, end] = columnsOf(i);
    if (static_cast<int64_t>(numbers[0].size()) + end - begin > 1 << 20)
      return call.error() << "has more than " << (1 << 20)
                          << " positions: make them a buffer of the model";
    for (int64_t j = begin; j < end; ++j) {
      numbers[0].push_back(APInt(type.getWidth(), i));
      numbers[1].push_back(APInt(type.getWidth(), j));
    }
  }
  auto count = static_cast<int64_t>(numbers[0].size());
  numbers[0].append(numbers[1]);
  auto value = DenseIntElementsAttr::get(RankedTensorType::get({2, count}, type), numbers[0]);
  return Results{aten::ConstantOp::create(call.builder, call.loc, value.getType(), value)};
}

} // namespace shardc::torch_export
