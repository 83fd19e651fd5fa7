// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/KnownIndices.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Sorting.h"
#include "dialects/interfaces/TensorView.h"

#include <limits>

using namespace mlir;

namespace shardc::aten {

/// Positions along a dim of this size.
static bool isDimBelow(Value tensor, int64_t dim, int64_t bound) {
  int64_t size = shapeOf(tensor)[dim];
  return !ShapedType::isDynamic(size) && size <= bound;
}

namespace {

bool isSigned(Type type) { return type.isSignlessInteger(32) || type.isSignlessInteger(64); }

/// The number that all elements of an integer constant are.
std::optional<int64_t> splatOf(Value tensor) {
  auto constant = tensor.getDefiningOp<ConstantOp>();
  auto value = constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : nullptr;
  if (!value || !value.isSplat() || !isSigned(elementTypeOf(tensor)) ||
      value.getSplatValue<APInt>().getSignificantBits() > 64)
    return std::nullopt;
  return value.getSplatValue<APInt>().getSExtValue();
}

class KnownRange {
public:
  bool isBelow(Value tensor, int64_t bound) {
    Type type = elementTypeOf(tensor);
    Operation *op = tensor.getDefiningOp();
    // Shorter integers may wrap.
    if (!op || ShapedType::isDynamic(bound) || !isSigned(type) || steps-- == 0)
      return false;
    auto below = [&](Value operand) { return isBelow(operand, bound); };
    if (auto sort = dyn_cast<SortOp>(op)) {
      if (tensor == sort.getIndices())
        return isDimBelow(sort.getSelf(), static_cast<int64_t>(sort.getDim()), bound);
      return below(sort.getSelf());
    }
    if (auto extreme = dyn_cast<ArgmaxOp>(op))
      return extreme.getDim() &&
             isDimBelow(extreme.getSelf(), static_cast<int64_t>(*extreme.getDim()), bound);
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto value = dyn_cast<DenseIntElementsAttr>(constant.getValue());
      auto isNumberBelow = [&](const APInt &number) {
        return !number.isNegative() && number.getActiveBits() < 63 &&
               number.ult(static_cast<uint64_t>(bound));
      };
      return value && llvm::all_of(value.getValues<APInt>(), isNumberBelow);
    }
    // A type of fewer bits changes numbers that it does not have.
    if (auto copy = dyn_cast<ToCopyOp>(op)) {
      Type from = elementTypeOf(copy.getSelf());
      return from.isInteger() &&
             from.getIntOrFloatBitWidth() <= elementTypeOf(tensor).getIntOrFloatBitWidth() &&
             below(copy.getSelf());
    }
    if (isa<CatOp, StackOp>(op))
      return llvm::all_of(op->getOperands(), below);
    if (auto choice = dyn_cast<WhereOp>(op))
      return below(choice.getSelf()) &&
             (below(choice.getOther()) || isBelowElsewhere(choice, bound));
    // Elements of operand 0, in other places.
    return (viewKindOf(op) || isa<IndexOp, IndexSelectOp, GatherOp>(op)) &&
           below(op->getOperand(0));
  }

private:
  /// Whether numbers that are not below `bound` are those which something else stands for: the
  /// largest one, or all from some number on.
  bool isBelowElsewhere(WhereOp choice, int64_t bound) {
    Operation *condition = choice.getCondition().getDefiningOp();
    Value kept = choice.getOther();
    if (!isa_and_nonnull<EqOp, GeOp>(condition) || condition->getOperand(0) != kept)
      return false;
    std::optional<int64_t> number = splatOf(condition->getOperand(1));
    if (isa<EqOp>(condition))
      return number == bound && bound < std::numeric_limits<int64_t>::max() &&
             isBelow(kept, bound + 1);
    return number && *number <= bound && isBelow(kept, std::numeric_limits<int64_t>::max());
  }

  int steps = 1000; ///< tensors to look at: the same one may be reached on many ways
};

} // namespace

bool areIndicesBelow(Value tensor, int64_t bound) { return KnownRange().isBelow(tensor, bound); }

} // namespace shardc::aten
