// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Rules.h"
#include "dialects/aten/Spatial.h"

using namespace mlir;

namespace shardc::aten {

/// A dim of size 1 has no factor.
static DimFactors factorOf(RuleBuilder &builder, int64_t size,
                           FactorKind kind = FactorKind::Parallel) {
  return size == 1 ? DimFactors{} : DimFactors{builder.factor(size, kind)};
}

static DimFactors join(DimFactors outer, const DimFactors &inner) {
  outer.insert(outer.end(), inner.begin(), inner.end());
  return outer;
}

ShardingRule convolutionRule(Operation *op) {
  auto conv = cast<ConvolutionOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> input = shapeOf(conv.getInput()), weight = shapeOf(conv.getWeight());
  int64_t groups = conv.getGroups();
  DimFactors batch = factorOf(builder, input[0]);
  DimFactors group, in, out;
  if (groups == 1) {
    // Sharded input channels are a sharded sum: reducing, as in a matrix product.
    in = factorOf(builder, weight[1], FactorKind::Reducing);
    out = factorOf(builder, weight[0]);
  } else {
    // Whole groups are independent; a part of each group would be no block of the channels.
    group = factorOf(builder, groups);
    in = factorOf(builder, weight[1], FactorKind::NeedReplication);
    out = factorOf(builder, ShapedType::isDynamic(weight[0]) ? weight[0] : weight[0] / groups,
                   FactorKind::NeedReplication);
  }
  builder.operandDim(0, 0, batch).operandDim(0, 1, join(group, in));
  builder.operandDim(1, 0, join(group, out)).operandDim(1, 1, in);
  builder.resultDim(0, 0, batch).resultDim(0, 1, join(group, out));
  if (!conv.getBias())
    return builder.linear(0).linear(1).build();
  builder.operandDim(2, 0, join(group, out));
  return addsTo(builder, 2, 0, 1).build();
}

/// The first `count` dims are independent.
static ShardingRule leadingRule(Operation *op, size_t count, bool isLinear) {
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0)).take_front(count))) {
    DimFactors factors = factorOf(builder, size);
    builder.operandDim(0, static_cast<int64_t>(i), factors);
    builder.resultDim(0, static_cast<int64_t>(i), factors);
  }
  if (isLinear)
    builder.linear(0);
  return builder.build();
}

ShardingRule windowsRule(Operation *op) { return leadingRule(op, 2, /*isLinear=*/true); }

ShardingRule poolRule(Operation *op, bool isLinear) {
  size_t spatial = 0;
  for (StringRef name : {"kernel_size", "output_size"})
    if (auto list = op->getAttrOfType<DenseI64ArrayAttr>(name))
      spatial = list.size();
  return leadingRule(op, shapeOf(op->getOperand(0)).size() - spatial, isLinear);
}

ShardingRule perChannelRule(Operation *op) {
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    int64_t dim = static_cast<int64_t>(i);
    DimFactors factors = factorOf(builder, size);
    builder.operandDim(0, dim, factors).resultDim(0, dim, factors);
    for (unsigned parameter = 1; dim == 1 && parameter < op->getNumOperands(); ++parameter)
      builder.operandDim(parameter, 0, factors);
  }
  return builder.build();
}

} // namespace shardc::aten
