// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that carry an extremum along a dim, with its position, and the most frequent element of
// a row.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Scans.h"
#include "dialects/aten/Sorting.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// 0, 1, 2 ... along `dim` of a tensor of the rank of `like`.
Value positionsAlong(Call &call, Value like, int64_t dim) {
  Emitter emit(call.builder, call.loc);
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, like);
  SmallVector<OpFoldResult> along(sizes.size(), call.builder.getIndexAttr(1));
  OpFoldResult length = call.builder.getIndexAttr(1);
  if (!sizes.empty())
    length = along[dim] = sizes[dim];
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(call.builder, call.loc, size);
  };
  return emit.view(emit.range(value(call.builder.getIndexAttr(0)), value(length)), along);
}

/// The last place up to each element where `holds`, or 0.
Value lastPlace(Call &call, Value holds, int64_t dim) {
  Emitter emit(call.builder, call.loc);
  Value none = emit.integer(0, call.builder.getI64Type());
  Value place = emit.where(holds, positionsAlong(call, holds, dim), none);
  return aten::CummaxOp::create(call.builder, call.loc, place, dim);
}

} // namespace

FailureOr<Results> buildExtremumSoFar(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  bool isMax = call.schema.overload == "cummax.default";
  FailureOr<Value> values = call.buildOne(isMax ? "aten.cummax" : "aten.cummin",
                                          {{"self", {*self}}}, {call.integerAttr("dim", *dim)});
  if (failed(values))
    return failure();
  Results results{*values, {}};
  if (!call.isUsed(1))
    return results;
  Emitter emit(call.builder, call.loc);
  Value isIt = emit.binary<aten::EqOp>(*self, *values);
  if (isa<FloatType>(aten::elementTypeOf(*self)))
    isIt = emit.binary<aten::LogicalOrOp>(isIt, emit.unary<aten::IsnanOp>(*self));
  results[1] = lastPlace(call, isIt, *dim);
  return results;
}

// Equal elements are neighbours in the sorted row: each of its runs is counted at its end. Of
// several that are most frequent PyTorch takes the least.
FailureOr<Results> buildMode(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> keepdim = call.boolean("keepdim");
  if (failed(self) || failed(keepdim))
    return failure();
  Emitter emit(call.builder, call.loc);
  bool isNumber = aten::typeOf(*self).getRank() == 0;
  Value row = isNumber ? emit.unsqueeze(*self, 0) : *self;
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(row).getRank());
  if (failed(dim))
    return failure();
  auto sort =
      aten::SortOp::create(call.builder, call.loc, row, *dim, /*descending=*/false, IntegerAttr());
  Value sorted = sort.getValues();
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, sorted);
  Value place = positionsAlong(call, sorted, *dim);
  Value one = emit.integer(1, call.builder.getI64Type()),
        zero = emit.integer(0, call.builder.getI64Type());
  // The neighbours, of which the first and the last element are their own.
  Value length = emit.add(emit.amax(place, *dim, /*keepdim=*/true), one);
  auto neighbour = [&](Value at) {
    at = emit.full(sizes, at);
    return aten::GatherOp::create(call.builder, call.loc, sorted, *dim, at).getResult();
  };
  Value before = neighbour(emit.binary<aten::MaximumOp>(emit.sub(place, one), zero));
  Value last = emit.sub(length, one);
  Value after = neighbour(emit.binary<aten::MinimumOp>(emit.add(place, one), last));
  Value starts = emit.binary<aten::LogicalOrOp>(emit.binary<aten::EqOp>(place, zero),
                                                emit.binary<aten::NeOp>(sorted, before));
  Value ends = emit.binary<aten::LogicalOrOp>(emit.binary<aten::EqOp>(place, last),
                                              emit.binary<aten::NeOp>(sorted, after));
  Value count = emit.add(emit.sub(place, lastPlace(call, starts, *dim)), one);
  FailureOr<Value> most =
      call.buildOne("aten.argmax", {{"self", {emit.where(ends, count, zero)}}},
                    {call.integerAttr("dim", *dim),
                     call.builder.getNamedAttr("keepdim", call.builder.getUnitAttr())});
  if (failed(most))
    return failure();
  Results results;
  for (Value all : sort->getResults()) {
    Value found = aten::GatherOp::create(call.builder, call.loc, all, *dim, *most);
    if (isNumber)
      found = emit.view(found, {});
    else if (!*keepdim)
      found = aten::SqueezeOp::create(call.builder, call.loc, found, ArrayRef<int64_t>{*dim});
    results.push_back(found);
  }
  return results;
}

} // namespace shardc::torch_export
