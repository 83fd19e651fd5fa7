// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Grouped.h"
#include "dialects/aten/Rules.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Grouped.cpp.inc"

namespace shardc::aten {

/// The number of rows, which the index has one number for each of.
static FailureOr<Dim> rowsOf(Inference &inference, ArrayRef<Dim> self, Value index) {
  Shape numbers = inference.sizesOf(index);
  if (self.size() != 2 || numbers.size() != 1)
    return inference.error("needs rows in two dims and an index of one, not ", self.size(), " and ",
                           numbers.size());
  return inference.same(self.front(), numbers.front(), "numbers of rows");
}

/// Of each row with one of `matrices`.
static std::optional<double> flops(Operation *op, ArrayRef<int64_t> rows, int64_t columns,
                                   int64_t matrices) {
  double count = 2;
  for (int64_t size : {rows[0], rows[1], columns}) {
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    count *= static_cast<double>(size);
  }
  auto all = op->getAttrOfType<IntegerAttr>(kAllMatricesAttr);
  if (all && all.getInt() > 0 && !ShapedType::isDynamic(matrices))
    count *= static_cast<double>(matrices) / static_cast<double>(all.getInt());
  return count;
}

LogicalResult IndexedMmOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf()), matrices = inference.sizesOf(op.getMat2());
  FailureOr<Dim> rows = rowsOf(inference, self, op.getIndex());
  FailureOr<Type> type = inference.sameElementType({op.getSelf(), op.getMat2()});
  if (failed(rows) || failed(type))
    return failure();
  if (matrices.size() != 3)
    return inference.error("needs matrices in three dims, not ", matrices.size());
  if (failed(inference.same(self[1], matrices[1], "contracted dims")))
    return failure();
  return inference.result({*rows, matrices[2]}, *type);
}

std::optional<double> IndexedMmOp::getFlops() {
  ArrayRef<int64_t> matrices = shapeOf(getMat2());
  return flops(*this, shapeOf(getSelf()), matrices[2], matrices[0]);
}

ShardingRule IndexedMmOp::getShardingRule() {
  return ruleBuilder(*this)
      .einsum({"sk", "ekn", "s"}, {"sn"})
      .operandDimInOnePiece(1, 0)
      .linear(0)
      .linear(1)
      .build();
}

LogicalResult IndexedOuterOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf()), other = inference.sizesOf(op.getOther());
  FailureOr<Dim> rows = rowsOf(inference, self, op.getIndex());
  FailureOr<Type> type = inference.sameElementType({op.getSelf(), op.getOther()});
  if (failed(rows) || failed(type))
    return failure();
  if (other.size() != 2 || failed(inference.same(*rows, other.front(), "numbers of rows")))
    return inference.error("needs rows in two dims on both sides");
  if (op.getStaticGroups().size() != 1)
    return inference.error("has one number of groups, not ", op.getStaticGroups().size());
  if (failed(inference.checkDynamicList(op.getStaticGroups(), op.getGroups(), "groups")))
    return failure();
  Dim groups = inference.given(op.getStaticGroups(), op.getGroups()).front();
  return inference.result({groups, self[1], other[1]}, *type);
}

std::optional<double> IndexedOuterOp::getFlops() {
  return flops(*this, shapeOf(getSelf()), shapeOf(getOther())[1], shapeOf(getResult())[0]);
}

ShardingRule IndexedOuterOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  ArrayRef<int64_t> result = shapeOf(getResult());
  auto factors = [&](int64_t size, FactorKind kind = FactorKind::Parallel) {
    return size == 1 ? DimFactors{} : DimFactors{builder.factor(size, kind)};
  };
  DimFactors rows = factors(shapeOf(getSelf()).front(), FactorKind::Reducing);
  DimFactors groups = factors(result[0]), m = factors(result[1]), n = factors(result[2]);
  if (!groups.empty())
    builder.at(groups.front()).inOnePiece = true;
  builder.operandDim(0, 0, rows).operandDim(1, 0, rows).operandDim(2, 0, rows);
  builder.operandDim(0, 1, m).operandDim(1, 1, n);
  builder.resultDim(0, 0, groups).resultDim(0, 1, m).resultDim(0, 2, n);
  return builder.linear(0).linear(1).build();
}

} // namespace shardc::aten
