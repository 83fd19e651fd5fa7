// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/KnownIndices.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Sorting.h"
#include "dialects/interfaces/TensorView.h"

using namespace mlir;

namespace shardc::aten {

/// Positions along a dim of this size.
static bool isDimBelow(Value tensor, int64_t dim, int64_t bound) {
  int64_t size = shapeOf(tensor)[dim];
  return !ShapedType::isDynamic(size) && size <= bound;
}

bool areIndicesBelow(Value tensor, int64_t bound) {
  Type type = elementTypeOf(tensor);
  // Shorter integers may wrap.
  if (ShapedType::isDynamic(bound) || !(type.isInteger(32) || type.isInteger(64)))
    return false;
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return false;
  if (auto sort = dyn_cast<SortOp>(op)) {
    if (tensor == sort.getIndices())
      return isDimBelow(sort.getSelf(), static_cast<int64_t>(sort.getDim()), bound);
    return areIndicesBelow(sort.getSelf(), bound);
  }
  if (auto extreme = dyn_cast<ArgmaxOp>(op))
    return extreme.getDim() &&
           isDimBelow(extreme.getSelf(), static_cast<int64_t>(*extreme.getDim()), bound);
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto value = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    auto isBelow = [&](const APInt &number) {
      return !number.isNegative() && number.getActiveBits() < 63 &&
             number.ult(static_cast<uint64_t>(bound));
    };
    return value && llvm::all_of(value.getValues<APInt>(), isBelow);
  }
  // A type of fewer bits changes numbers that it does not have.
  if (auto copy = dyn_cast<ToCopyOp>(op)) {
    Type from = elementTypeOf(copy.getSelf());
    return from.isInteger() &&
           from.getIntOrFloatBitWidth() <= elementTypeOf(tensor).getIntOrFloatBitWidth() &&
           areIndicesBelow(copy.getSelf(), bound);
  }
  // Elements of operand 0, in other places.
  if (viewKindOf(op) || isa<IndexOp, IndexSelectOp, GatherOp>(op))
    return areIndicesBelow(op->getOperand(0), bound);
  return false;
}

} // namespace shardc::aten
