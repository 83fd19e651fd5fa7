// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/AffineFormsDetail.h"
#include "dialects/aten/Aten.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc::aten {

using namespace detail;

namespace {

/// The mask of `condition >= 0`.
MaskForm atLeastZero(const AffineForm &condition, ArrayRef<int64_t> shape) {
  auto [low, high] = range(condition, shape);
  if (low && *low >= 0)
    return {};
  if (high && *high < 0)
    return {{}, true};
  return {{condition}, false};
}

MaskForm both(const MaskForm &a, const MaskForm &b) {
  if (a.isFalse || b.isFalse)
    return {{}, true};
  MaskForm result = a;
  for (const AffineForm &condition : b.conditions)
    if (!llvm::is_contained(result.conditions, condition))
      result.conditions.push_back(condition);
  return result;
}

/// The same mask in the positions of a tensor that it is broadcast to.
MaskForm broadcast(const MaskForm &mask, size_t rank) {
  MaskForm result = mask;
  for (AffineForm &condition : result.conditions)
    condition.coefficients.insert(condition.coefficients.begin(),
                                  rank - condition.coefficients.size(), 0);
  return result;
}

Mask comparison(const FormContext &context) {
  Operation *op = context.op;
  const AffineForm *lhs = context.operand(0), *rhs = context.operand(1);
  if (!lhs || !rhs)
    return std::nullopt;
  ArrayRef<int64_t> shape = context.resultShape();
  /// a - b + constant >= 0
  auto difference = [&](const AffineForm &a, const AffineForm &b, int64_t constant) -> Mask {
    Form form = combine(a, b, -1, shape);
    if (!form || llvm::AddOverflow(form->constant, constant, form->constant))
      return std::nullopt;
    return atLeastZero(*form, shape);
  };
  auto equal = [&]() -> Mask {
    Mask below = difference(*rhs, *lhs, 0), above = difference(*lhs, *rhs, 0);
    return below && above ? Mask(both(*below, *above)) : std::nullopt;
  };
  return llvm::TypeSwitch<Operation *, Mask>(op)
      .Case([&](LeOp) { return difference(*rhs, *lhs, 0); })
      .Case([&](LtOp) { return difference(*rhs, *lhs, -1); })
      .Case([&](GeOp) { return difference(*lhs, *rhs, 0); })
      .Case([&](GtOp) { return difference(*lhs, *rhs, -1); })
      .Case([&](EqOp) { return equal(); })
      .Case([&](NeOp) -> Mask {
        Mask mask = equal();
        if (!mask || !mask->conditions.empty())
          return std::nullopt;
        return MaskForm{{}, mask->isTrue()};
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace

Mask detail::boolForm(const FormContext &context) {
  Operation *op = context.op;
  const AffineForms &forms = context.forms;
  size_t rank = context.resultShape().size();
  auto operand = [&](unsigned i) { return forms.getMask(op->getOperand(i)); };
  auto constant = [](int64_t value) { return MaskForm{{}, value == 0}; };

  if (auto dims = sourceDims(op); dims) {
    const MaskForm *mask = operand(0);
    if (!mask)
      return std::nullopt;
    MaskForm result = *mask;
    for (AffineForm &condition : result.conditions)
      condition = rearrange(condition, *dims);
    return result;
  }
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.isSplat() ? Mask(constant(elements.getSplatValue<bool>())) : std::nullopt;
  return llvm::TypeSwitch<Operation *, Mask>(op)
      .Case<LeOp, LtOp, GeOp, GtOp, EqOp, NeOp>([&](auto) { return comparison(context); })
      .Case<BitwiseAndOp, LogicalAndOp>([&](auto) -> Mask {
        const MaskForm *lhs = operand(0), *rhs = operand(1);
        if ((lhs && lhs->isFalse) || (rhs && rhs->isFalse))
          return constant(0);
        if (!lhs || !rhs)
          return std::nullopt;
        return both(broadcast(*lhs, rank), broadcast(*rhs, rank));
      })
      .Case<BitwiseOrOp, LogicalOrOp>([&](auto) -> Mask {
        const MaskForm *lhs = operand(0), *rhs = operand(1);
        if ((lhs && lhs->isTrue()) || (rhs && rhs->isTrue()))
          return constant(1);
        if (lhs && rhs && (lhs->isFalse || rhs->isFalse))
          return broadcast(lhs->isFalse ? *rhs : *lhs, rank);
        return std::nullopt;
      })
      .Case<BitwiseNotOp, LogicalNotOp>([&](auto) -> Mask {
        const MaskForm *mask = operand(0);
        if (!mask || mask->conditions.size() > 1)
          return std::nullopt;
        if (mask->conditions.empty())
          return constant(mask->isFalse);
        // not (a >= 0) is -a - 1 >= 0
        Form negated =
            combine(splatForm(-1, 0), mask->conditions.front(), -1, context.resultShape());
        return negated ? Mask(atLeastZero(*negated, context.resultShape())) : std::nullopt;
      })
      .Case([&](ToCopyOp) -> Mask {
        if (const MaskForm *mask = operand(0))
          return *mask;
        std::optional<int64_t> value = forms.getSplat(op->getOperand(0));
        return value ? Mask(constant(*value)) : std::nullopt;
      })
      .Case<SliceOp, SelectOp, IndexOp, GatherOp>([&](auto) -> Mask {
        // Of one value only: positions do not matter.
        std::optional<int64_t> value = forms.getSplat(op->getOperand(0));
        return value ? Mask(constant(*value)) : std::nullopt;
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// where(mask, 0, lowest): an additive mask.
Mask detail::additiveForm(const FormContext &context) {
  Operation *op = context.op;
  auto where = dyn_cast<WhereOp>(op);
  if (!where)
    return std::nullopt;
  const MaskForm *mask = context.forms.getMask(where.getCondition());
  DenseElementsAttr seen, hidden;
  if (!mask || !matchPattern(where.getSelf(), m_Constant(&seen)) || !seen.isSplat() ||
      !matchPattern(where.getOther(), m_Constant(&hidden)) || !hidden.isSplat())
    return std::nullopt;
  APFloat value = hidden.getSplatValue<APFloat>();
  bool hides = value.isNegative() && (value.isInfinity() || value.isLargest());
  if (!seen.getSplatValue<APFloat>().isZero() || !hides)
    return std::nullopt;
  return broadcast(*mask, context.resultShape().size());
}

} // namespace shardc::aten
