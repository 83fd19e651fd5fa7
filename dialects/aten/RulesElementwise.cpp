// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"

using namespace mlir;

namespace shardc::aten {

std::vector<std::vector<int64_t>> shapesOf(TypeRange types) {
  std::vector<std::vector<int64_t>> shapes;
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    shapes.push_back(tensor ? std::vector<int64_t>(tensor.getShape()) : std::vector<int64_t>());
  }
  return shapes;
}

RuleBuilder ruleBuilder(Operation *op) {
  return RuleBuilder::ofShapes(shapesOf(op->getOperandTypes()), shapesOf(op->getResultTypes()));
}

ShardingRule elementwiseRule(Operation *op, const OperandSets &linear) {
  RuleBuilder builder = ruleBuilder(op);
  builder.pointwise();
  for (const std::vector<unsigned> &operands : linear)
    builder.linearJointly(operands);
  return builder.build();
}

ShardingRule copyRule(Operation *op) {
  return ruleBuilder(op).pointwise().linear(0).movesDataOnly().build();
}

/// Whether every value of `from` is one of `to`.
static bool isExactCast(Type from, Type to) {
  if (from == to)
    return true;
  auto fromFloat = dyn_cast<FloatType>(from), toFloat = dyn_cast<FloatType>(to);
  if (fromFloat && toFloat)
    return APFloat::isRepresentableBy(fromFloat.getFloatSemantics(), toFloat.getFloatSemantics());
  if (fromFloat)
    return false;
  // A sum of bools is no bool: 1 + 1 is 2 after the cast only.
  if (from.isInteger(1))
    return false;
  unsigned width = from.getIntOrFloatBitWidth() - (from.isUnsignedInteger() ? 0 : 1);
  if (toFloat)
    return width <= APFloat::semanticsPrecision(toFloat.getFloatSemantics());
  return false; // a sum may wrap in one type and not in the other
}

ShardingRule castRule(Operation *op) {
  // A rounding cast of a partial value is not linear (G1).
  RuleBuilder builder = ruleBuilder(op);
  builder.pointwise();
  if (isExactCast(elementTypeOf(op->getOperand(0)), elementTypeOf(op->getResult(0))))
    builder.linear(0);
  return builder.build();
}

ShardingRule divRule(Operation *op) {
  RuleBuilder builder = ruleBuilder(op);
  builder.pointwise();
  if (!cast<DivOp>(op).getRoundingMode())
    builder.linear(0);
  return builder.build();
}

} // namespace shardc::aten
