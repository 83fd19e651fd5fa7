// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"

using namespace mlir;

namespace shardc::aten {

/// The op's attribute `dim`: one or several, or none for all.
static std::vector<int64_t> reducedDims(Operation *op) {
  Attribute attribute = op->getInherentAttr("dim").value_or(Attribute());
  std::vector<int64_t> dims;
  if (auto list = dyn_cast_or_null<DenseI64ArrayAttr>(attribute))
    dims = list.asArrayRef();
  else if (auto one = dyn_cast_or_null<IntegerAttr>(attribute))
    dims = {one.getInt()};
  // A 0-dim tensor may be reduced over its "dim 0".
  if (typeOf(op->getOperand(0)).getRank() == 0)
    dims.clear();
  return dims;
}

ShardingRule reductionRule(Operation *op, Reduction reduction, bool isLinear) {
  RuleBuilder builder = ruleBuilder(op);
  builder.reduce(reducedDims(op), reduction);
  if (isLinear)
    builder.linear(0);
  return builder.build();
}

ShardingRule jointReductionRule(Operation *op, int64_t exchange) {
  std::vector<int64_t> dims = reducedDims(op);
  if (dims.empty())
    for (int64_t i = 0; i < typeOf(op->getOperand(0)).getRank(); ++i)
      dims.push_back(i);
  return jointRule(op, std::move(dims), exchange);
}

ShardingRule jointRule(Operation *op, std::vector<int64_t> dims, int64_t exchange) {
  if (typeOf(op->getOperand(0)).getRank() == 0)
    dims.clear();
  return ruleBuilder(op).cooperative(std::move(dims), exchange).build();
}

ShardingRule scanRule(Operation *op, int64_t dim) {
  RuleBuilder builder = ruleBuilder(op);
  if (typeOf(op->getOperand(0)).getRank() != 0)
    builder.cooperative({dim}, /*exchange=*/1).operandDimInOnePiece(0, dim);
  return builder.linear(0).build();
}

ShardingRule trailingNormRule(Operation *op, int64_t count, int64_t exchange) {
  int64_t rank = typeOf(op->getOperand(0)).getRank();
  std::vector<int64_t> dims;
  for (int64_t i = rank - count; i < rank; ++i)
    dims.push_back(i);
  return jointRule(op, std::move(dims), exchange);
}

ShardingRule groupNormRule(Operation *op) {
  RuleBuilder builder = ruleBuilder(op);
  RankedTensorType type = typeOf(op->getOperand(0));
  int64_t groups = cast<GroupNormOp>(op).getNumGroups();
  constexpr int64_t exchange = 3; // count, mean, sum of squared differences
  auto both = [&](int64_t dim, const DimFactors &factors) {
    builder.operandDim(0, dim, factors).resultDim(0, dim, factors);
  };
  auto factor = [&](DimFactors &factors, int64_t size, FactorKind kind) {
    if (size == 1)
      return;
    unsigned added = builder.factor(size, kind);
    if (kind == FactorKind::Cooperative)
      builder.at(added).exchange = exchange;
    factors.push_back(added);
  };
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    DimFactors factors;
    int64_t size = type.getDimSize(dim);
    if (dim != 1) {
      factor(factors, size, dim == 0 ? FactorKind::Parallel : FactorKind::Cooperative);
      both(dim, factors);
      continue;
    }
    // Which channels a group has is known only with their number.
    bool isKnown = !ShapedType::isDynamic(size);
    factor(factors, groups, isKnown ? FactorKind::Parallel : FactorKind::NeedReplication);
    factor(factors, isKnown ? size / groups : size,
           isKnown ? FactorKind::Cooperative : FactorKind::NeedReplication);
    both(dim, factors);
    for (unsigned parameter = 1; parameter < op->getNumOperands(); ++parameter)
      builder.operandDim(parameter, 0, factors);
  }
  return builder.build();
}

} // namespace shardc::aten
