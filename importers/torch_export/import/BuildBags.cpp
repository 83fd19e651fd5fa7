// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bags of rows of a table: rows looked up, and sums, means or maxima of some that follow each
// other.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/RowFrequency.h"
#include "dialects/aten/Writing.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {

/// Notes at a lookup how it is differentiated.
static LogicalResult noteFrequency(Call &call, Value rows) {
  FailureOr<bool> isScaled = call.boolean("scale_grad_by_freq");
  if (failed(isScaled))
    return failure();
  if (*isScaled)
    rows.getDefiningOp()->setAttr(aten::kScaledByFrequencyAttr, call.builder.getUnitAttr());
  return success();
}

FailureOr<Results> buildEmbedding(Call &call) {
  FailureOr<Results> rows = buildByName(call, "aten.embedding");
  if (failed(rows) || failed(noteFrequency(call, rows->front())))
    return failure();
  return rows;
}

/// The others are what PyTorch's own backward reads.
static FailureOr<Results> firstOfFour(FailureOr<Value> bags) {
  if (failed(bags))
    return failure();
  return Results{*bags, Value(), Value(), Value()};
}

static FailureOr<int64_t> rowFromEnd(Call &call, Value table, int64_t row) {
  int64_t rows = aten::shapeOf(table).front();
  if (ShapedType::isDynamic(rows))
    return call.error() << "a 'padding_idx' from the end needs a table of known size";
  return row + rows;
}

FailureOr<Results> buildEmbeddingBag(Call &call) {
  FailureOr<Value> weight = call.tensor("weight"), indices = call.tensor("indices"),
                   offsets = call.tensor("offsets"), factors = call.tensor("per_sample_weights");
  FailureOr<std::optional<int64_t>> mode = call.integer("mode");
  FailureOr<bool> hasEnd = call.boolean("include_last_offset");
  FailureOr<std::optional<int64_t>> padding =
      call.schema.find("padding_idx") ? call.integer("padding_idx") : std::optional<int64_t>();
  if (failed(weight) || failed(indices) || failed(offsets) || failed(factors) || failed(mode) ||
      failed(hasEnd) || failed(padding))
    return failure();
  // `embedding_bag` counts a negative row from the end, for `_embedding_bag` it is none.
  if (*padding && **padding < 0 && call.schema.overload == "embedding_bag.padding_idx") {
    FailureOr<int64_t> row = rowFromEnd(call, *weight, **padding);
    if (failed(row))
      return failure();
    padding = std::optional(*row);
  }
  // A graph with its backward names them all, and gives them to that.
  for (unsigned result = 1; result < 4; ++result)
    if (call.isUsed(result) && call.schema.overload.starts_with("embedding_bag"))
      return call.error() << "only its first result is supported: the others, of which the program "
                             "reads number "
                          << result << ", are what PyTorch's own backward needs";
  if (aten::typeOf(*indices).getRank() != 1 || aten::typeOf(*offsets).getRank() != 1)
    return call.error() << "needs vectors of indices and of offsets";
  Emitter emit(call.builder, call.loc);
  auto at = [&](int64_t value) -> OpFoldResult { return call.builder.getIndexAttr(value); };
  Type i64 = call.builder.getI64Type(), type = aten::elementTypeOf(*weight);
  // The bag of a place is how many begin at it or in front of it, less one.
  Value begins = *offsets;
  if (*hasEnd) {
    OpFoldResult bags =
        addSizes(call.builder, call.loc, sizesOf(call.builder, call.loc, begins).front(), at(-1));
    FailureOr<Value> part = buildSlice(call.builder, call.loc, begins, 0, at(0), bags);
    if (failed(part))
      return failure();
    begins = *part;
  }
  OpFoldResult count = sizesOf(call.builder, call.loc, *indices).front();
  Value places = emit.range(getValueOrCreateConstantIndexOp(call.builder, call.loc, at(0)),
                            getValueOrCreateConstantIndexOp(call.builder, call.loc, count));
  Value isBehind = emit.binary<aten::LeOp>(begins, emit.unsqueeze(places, 1));
  Value bag =
      emit.sub(emit.sum(emit.cast(isBehind, i64), 1, /*keepdim=*/false), emit.integer(1, i64));

  FailureOr<Value> rows =
      call.buildOne("aten.embedding", {{"weight", {*weight}}, {"indices", {*indices}}},
                    {call.integerAttr("padding_idx", padding->value_or(-1) < 0 ? -1 : **padding)});
  if (failed(rows) || failed(noteFrequency(call, *rows)))
    return failure();
  bool isMax = mode->value_or(0) == 2;
  Value counts = emit.full(count, emit.integer(1, i64));
  if (*factors)
    rows = emit.mul(*rows, emit.unsqueeze(*factors, 1));
  if (padding->value_or(-1) >= 0) {
    Value isPadding =
        emit.binary<aten::EqOp>(*indices, emit.integer(**padding, aten::elementTypeOf(*indices)));
    counts = emit.where(isPadding, emit.integer(0, i64), counts);
    rows =
        emit.where(emit.unsqueeze(isPadding, 1), emit.scalar(isMax ? -INFINITY : 0.0, type), *rows);
  }
  SmallVector<OpFoldResult> sizes{sizesOf(call.builder, call.loc, begins).front(),
                                  sizesOf(call.builder, call.loc, *weight).back()};
  auto addUp = [&](Value start, Value values) {
    return call.buildOne("aten.index_put",
                         {{"self", {start}}, {"indices", {bag}}, {"values", {values}}},
                         {call.integersAttr("indices_at", 0),
                          call.builder.getNamedAttr("accumulate", call.builder.getUnitAttr())});
  };
  if (mode->value_or(0) == 0)
    return firstOfFour(addUp(emit.zeros(sizes, type), *rows));
  FailureOr<Value> inBag = addUp(emit.zeros(sizes.front(), i64), counts);
  if (failed(inBag))
    return failure();
  Value zero = emit.integer(0, i64), size = emit.unsqueeze(*inBag, 1);
  Value isEmpty = emit.binary<aten::EqOp>(size, zero);
  if (!isMax) {
    FailureOr<Value> sums = addUp(emit.zeros(sizes, type), *rows);
    if (failed(sums))
      return failure();
    return firstOfFour(
        emit.div(*sums, emit.cast(emit.where(isEmpty, emit.integer(1, i64), size), type)));
  }
  FailureOr<Value> index = buildExpand(call.builder, call.loc, emit.unsqueeze(bag, 1),
                                       sizesOf(call.builder, call.loc, *rows));
  if (failed(index))
    return failure();
  FailureOr<Value> largest =
      call.buildOne("aten.scatter",
                    {{"self", {emit.full(sizes, emit.scalar(-INFINITY, type))}},
                     {"index", {*index}},
                     {"src", {*rows}}},
                    {call.integerAttr("dim", 0),
                     call.builder.getNamedAttr("reduce", call.builder.getStringAttr("amax"))});
  if (failed(largest))
    return failure();
  return firstOfFour(emit.where(isEmpty, emit.scalar(0.0, type), *largest));
}

} // namespace shardc::torch_export
