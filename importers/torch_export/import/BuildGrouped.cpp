// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of groups of rows, whose sizes are known when the program runs: as products of rows with
// the matrix of the group that each is in.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Grouped.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// Groups of rows by where each ends.
struct RowGroups {
  Call &call;
  Emitter emit;
  Value ends;

  RowGroups(Call &call, Value ends) : call(call), emit(call.builder, call.loc), ends(ends) {}

  /// The group of each row along `dim`: how many groups end before it, or where it is. Rows behind
  /// the last group are in none.
  Value indexOf(Value rows, int64_t dim) {
    OpFoldResult length = sizesOf(call.builder, call.loc, rows)[dim];
    Value start = arith::ConstantIndexOp::create(call.builder, call.loc, 0);
    Value positions =
        emit.range(start, getValueOrCreateConstantIndexOp(call.builder, call.loc, length));
    Value isBefore = emit.binary<aten::LeOp>(ends, emit.unsqueeze(positions, 1));
    return emit.sum(emit.cast(isBefore, call.builder.getI64Type()), {1}, /*keepdim=*/false);
  }
  Value transposed(Value x) {
    int64_t rank = aten::typeOf(x).getRank();
    return aten::TransposeOp::create(call.builder, call.loc, x, rank - 2, rank - 1);
  }
  Value multiply(Value rows, Value matrices, Value index) {
    return aten::IndexedMmOp::create(call.builder, call.loc, rows, matrices, index,
                                     /*sorted=*/true);
  }
  Value sumOuter(Value self, Value other, Value index) {
    SmallVector<int64_t> fixed;
    SmallVector<Value> dynamic;
    splitMixed(sizesOf(call.builder, call.loc, ends).front(), fixed, dynamic);
    return aten::IndexedOuterOp::create(call.builder, call.loc, self, other, index, fixed, dynamic,
                                        /*sorted=*/true);
  }

  /// Whether there is a matrix for each group.
  LogicalResult check(Value matrices) {
    ArrayRef<int64_t> ofEnds = aten::shapeOf(ends), sizes = aten::shapeOf(matrices);
    if (ofEnds.size() != 1)
      return call.error() << "needs the ends of its groups in one dim";
    if (sizes.size() == 3 && !ShapedType::isDynamic(sizes[0]) &&
        !ShapedType::isDynamic(ofEnds[0]) && sizes[0] != ofEnds[0])
      return call.error() << "has " << sizes[0] << " matrices for " << ofEnds[0] << " groups";
    return success();
  }
};

} // namespace

FailureOr<Results> buildGroupedMm(Call &call) {
  FailureOr<Value> self = call.tensor("self"), other = call.tensor("mat2"),
                   ends = call.tensor("offs"), bias = call.tensor("bias");
  FailureOr<Type> type = call.elementType("out_dtype");
  if (failed(self) || failed(other) || failed(ends) || failed(bias) || failed(type))
    return failure();
  if (*bias)
    return call.error() << "has no bias: add it to the result";
  if (*type && *type != aten::elementTypeOf(*self))
    return call.error() << "has the element type of its operands: cast the result";
  size_t left = aten::shapeOf(*self).size(), right = aten::shapeOf(*other).size();
  if (left < 2 || left > 3 || right < 2 || right > 3)
    return call.error() << "multiplies tensors of two and three dims, not of " << left << " and "
                        << right;
  if ((left == 3 && right == 3) != !*ends)
    return call.error() << "has 'offs' where a tensor has two dims, and only there";
  if (!*ends)
    return one(call.buildOne("aten.bmm", {{"self", {*self}}, {"mat2", {*other}}}));
  RowGroups groups(call, *ends);
  if (failed(groups.check(left == 3 ? *self : *other)))
    return failure();
  if (left == 2 && right == 3)
    return Results{groups.multiply(*self, *other, groups.indexOf(*self, 0))};
  if (left == 2)
    return Results{
        groups.sumOuter(groups.transposed(*self), *other, groups.indexOf(*self, 1))};
  // Columns in groups: the transpose of a product of rows.
  Value rows = groups.transposed(*other);
  return Results{groups.transposed(
      groups.multiply(rows, groups.transposed(*self), groups.indexOf(rows, 0)))};
}

// What `transformers` calls where it does not call grouped_mm.
FailureOr<Results> buildGroupedFallback(Call &call) {
  FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight"),
                   ends = call.tensor("offs");
  if (failed(input) || failed(weight) || failed(ends))
    return failure();
  RowGroups groups(call, *ends);
  if (failed(groups.check(*weight)))
    return failure();
  return Results{groups.multiply(*input, *weight, groups.indexOf(*input, 0))};
}

FailureOr<Results> buildGroupedFallbackBackward(Call &call) {
  FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight"),
                   ends = call.tensor("offs"), grad = call.tensor("grad_output");
  if (failed(input) || failed(weight) || failed(ends) || failed(grad))
    return failure();
  RowGroups groups(call, *ends);
  if (failed(groups.check(*weight)))
    return failure();
  Value index = groups.indexOf(*input, 0);
  return Results{groups.multiply(*grad, groups.transposed(*weight), index),
                 groups.sumOuter(*input, *grad, index)};
}

} // namespace shardc::torch_export
