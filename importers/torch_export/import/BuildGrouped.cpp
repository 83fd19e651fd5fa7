// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of groups of rows, whose sizes are known when the program runs: as products of rows with
// the matrix of the group that each is in.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"
#include "dialects/aten/Grouped.h"
#include "dialects/aten/KnownIndices.h"
#include "dialects/aten/Sorting.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// The number of a constant of one element, or the difference of two.
std::optional<double> numberOf(Value scalar) {
  if (auto difference = scalar.getDefiningOp<aten::SubOp>()) {
    std::optional<double> x = numberOf(difference.getSelf()), y = numberOf(difference.getOther());
    if (!x || !y || difference.getAlpha().convertToDouble() != 1)
      return std::nullopt;
    return *x - *y;
  }
  auto constant = scalar.getDefiningOp<aten::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!elements || !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().convertToDouble();
  return static_cast<double>(elements.getSplatValue<APInt>().getSExtValue());
}

/// What is cast. Each type on the way has all numbers up to `most`.
Value withoutCasts(Value x, double most = 1) {
  while (auto cast = x.getDefiningOp<aten::ToCopyOp>()) {
    Type type = cast.getDtype();
    if (most > 1 && !type.isInteger(32) && !type.isInteger(64) && !type.isF32() && !type.isF64())
      return x;
    x = cast.getSelf();
  }
  return x;
}

/// The integers that a histogram counts, whose bins are those of one number each, from 0
/// (buildHistc). None may be outside.
Value countedIn(Value histogram, int64_t bins) {
  auto is = [](Value scalar, int64_t number) {
    return numberOf(scalar) == static_cast<double>(number);
  };
  auto counts = withoutCasts(histogram).getDefiningOp<aten::IndexPutOp>();
  if (!counts || !counts.getAccumulate() || counts.getIndices().size() != 1 || bins < 2 ||
      bins > (1 << 24))
    return nullptr;
  auto zeros = counts.getSelf().getDefiningOp<aten::ExpandOp>();
  auto place = counts.getIndices().front().getDefiningOp<aten::MinimumOp>();
  if (!zeros || !is(zeros.getSelf(), 0) || !place || !is(place.getOther(), bins - 1))
    return nullptr;
  auto chosen = withoutCasts(place.getSelf()).getDefiningOp<aten::WhereOp>();
  if (!chosen || chosen.getCondition() != withoutCasts(counts.getValues()))
    return nullptr;
  auto inside = chosen.getCondition().getDefiningOp<aten::LogicalAndOp>();
  auto from = inside ? inside.getSelf().getDefiningOp<aten::GeOp>() : nullptr;
  auto to = inside ? inside.getOther().getDefiningOp<aten::LeOp>() : nullptr;
  if (!from || !to || from.getSelf() != to.getSelf() || !is(from.getOther(), 0) ||
      !is(to.getOther(), bins - 1))
    return nullptr;
  auto quotient = chosen.getSelf().getDefiningOp<aten::DivOp>();
  auto scaled = quotient ? quotient.getSelf().getDefiningOp<aten::MulOp>() : nullptr;
  auto shifted = scaled ? scaled.getSelf().getDefiningOp<aten::SubOp>() : nullptr;
  if (!shifted || shifted.getSelf() != from.getSelf() || !is(shifted.getOther(), 0) ||
      !is(scaled.getOther(), bins) || !is(quotient.getOther(), bins - 1))
    return nullptr;
  Value numbers = withoutCasts(from.getSelf(), static_cast<double>(bins));
  return aten::areIndicesBelow(numbers, bins) ? numbers : nullptr;
}

/// Groups of rows by where each ends.
struct RowGroups {
  Call &call;
  Emitter emit;
  Value ends;

  RowGroups(Call &call, Value ends) : call(call), emit(call.builder, call.loc), ends(ends) {}

  /// The group of each row along `dim`: how many groups end before it, or where it is. Rows behind
  /// the last group are in none.
  Value indexOf(Value rows, int64_t dim) {
    if (Value numbers = sortedNumbers(aten::shapeOf(rows)[dim]))
      return numbers;
    OpFoldResult length = sizesOf(call.builder, call.loc, rows)[dim];
    Value start = arith::ConstantIndexOp::create(call.builder, call.loc, 0);
    Value positions =
        emit.range(start, getValueOrCreateConstantIndexOp(call.builder, call.loc, length));
    Value isBefore = emit.binary<aten::LeOp>(ends, emit.unsqueeze(positions, 1));
    return emit.sum(emit.cast(isBefore, call.builder.getI64Type()), {1}, /*keepdim=*/false);
  }
  /// Where groups end after as many rows as each number has among sorted ones, these are the groups
  /// of the rows. So mixtures of experts find the ends. Null where it is otherwise.
  Value sortedNumbers(int64_t rows) {
    auto sums = withoutCasts(ends).getDefiningOp<aten::CumsumOp>();
    if (!sums || ShapedType::isDynamic(rows))
      return nullptr;
    Value numbers = countedIn(sums.getSelf(), aten::shapeOf(ends).front());
    auto sort = numbers ? numbers.getDefiningOp<aten::SortOp>() : nullptr;
    if (!sort || numbers != sort.getValues() || sort.getDescending() ||
        aten::shapeOf(numbers) != ArrayRef<int64_t>(rows))
      return nullptr;
    return numbers;
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
    return Results{groups.sumOuter(groups.transposed(*self), *other, groups.indexOf(*self, 1))};
  // Columns in groups: the transpose of a product of rows.
  Value rows = groups.transposed(*other);
  return Results{
      groups.transposed(groups.multiply(rows, groups.transposed(*self), groups.indexOf(rows, 0)))};
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
