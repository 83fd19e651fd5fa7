// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that write at positions.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// A write along one dim.
struct Scatter {
  Value self, index;
  int64_t dim;

  static FailureOr<Scatter> of(Call &call) {
    FailureOr<Value> self = call.tensor("self"), index = call.tensor("index");
    if (failed(self) || failed(index))
      return failure();
    FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
    if (failed(dim))
      return failure();
    return Scatter{*self, *index, *dim};
  }

  /// Whether the index names one place in each row: each place is written at most once.
  bool writesOnce() const {
    ArrayRef<int64_t> have = aten::shapeOf(self), at = aten::shapeOf(index);
    if (have.empty() || have.size() != at.size() || at[dim] != 1)
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
  Value isWritten(Call &call) const {
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
};

} // namespace

// The same number everywhere: how often a place is written does not matter, only whether.
FailureOr<Results> buildScatterValue(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  if (failed(scatter))
    return failure();
  FailureOr<Value> value = call.scalar(*call.find("value"), aten::elementTypeOf(scatter->self));
  if (failed(value))
    return failure();
  Emitter emit(call.builder, call.loc);
  if (scatter->writesOnce())
    return Results{emit.where(scatter->isWritten(call), *value, scatter->self)};
  Type i64 = call.builder.getI64Type();
  Value none = emit.zeros(sizesOf(call.builder, call.loc, scatter->self), i64);
  Value ones = emit.full(sizesOf(call.builder, call.loc, scatter->index), emit.integer(1, i64));
  Value times =
      aten::ScatterAddOp::create(call.builder, call.loc, none, scatter->dim, scatter->index, ones);
  Value isWritten = emit.binary<aten::GtOp>(times, emit.integer(0, i64));
  return Results{emit.where(isWritten, *value, scatter->self)};
}

FailureOr<Results> buildScatterSource(Call &call) {
  FailureOr<Scatter> scatter = Scatter::of(call);
  FailureOr<Value> source = call.tensor("src");
  if (failed(scatter) || failed(source))
    return failure();
  if (!scatter->writesOnce() || aten::shapeOf(*source) != aten::shapeOf(scatter->index))
    return call.error() << "an index is supported only where it names one place along dim "
                        << scatter->dim
                        << " and has the other sizes of self: of several values for one place, any "
                           "may stay";
  Emitter emit(call.builder, call.loc);
  return Results{emit.where(scatter->isWritten(call), *source, scatter->self)};
}

// One number at all places, which a mask or indices name: how often a place is written does not
// matter, only whether.
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
  bool hasMask = llvm::any_of(present, isMask);
  bool isNumber = llvm::all_of(aten::shapeOf(*values), [](int64_t size) { return size == 1; });
  if (*adds || !isNumber || present.empty() || (hasMask && present.size() > 1))
    return buildByName(call, "aten.index_put");
  Emitter emit(call.builder, call.loc);
  Value number = aten::shapeOf(*values).empty() ? *values : emit.view(*values, {});
  Value isWritten;
  if (hasMask) {
    // Its dims are those of self from `at` on.
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, present.front());
    int64_t rest = aten::typeOf(*self).getRank() - at.front() - static_cast<int64_t>(sizes.size());
    if (rest < 0)
      return call.error() << "a mask of " << sizes.size() << " dims at dim " << at.front()
                          << " has more dims than self";
    sizes.append(rest, call.builder.getIndexAttr(1));
    isWritten = rest == 0 ? present.front() : emit.view(present.front(), sizes);
  } else {
    Type i64 = call.builder.getI64Type();
    FailureOr<Value> times =
        call.buildOne("aten.index_put",
                      {{"self", {emit.zeros(sizesOf(call.builder, call.loc, *self), i64)}},
                       {"indices", present},
                       {"values", {emit.integer(1, i64)}}},
                      {call.integersAttr("indices_at", at),
                       call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
    if (failed(times))
      return failure();
    isWritten = emit.binary<aten::GtOp>(*times, emit.integer(0, i64));
  }
  return Results{emit.where(isWritten, number, *self)};
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
  bool isPlain = asReal(*call.find("alpha")) == 1.0;
  return one(call.buildOne("aten.index_put",
                           {{"self", {*self}},
                            {"indices", {*index}},
                            {"values", {isPlain ? *source : emit.mul(*source, *alpha)}}},
                           {call.integersAttr("indices_at", *dim),
                            call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())}));
}

} // namespace shardc::torch_export
