// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/IndexedWrites.h"
#include "dialects/aten/KnownLookups.h"
#include "dialects/aten/LookupLine.h"
#include "dialects/aten/Rules.h"
#include "dialects/sharding/HaloCost.h"

using namespace mlir;

namespace shardc::aten {

ShardingRule EmbeddingOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  std::optional<std::string> batch = leadingLetters(shapeOf(getIndices()).size());
  if (!batch)
    return builder.replicateAll().build();
  builder.einsum({"ve", *batch}, {*batch + "e"}).operandDimInOnePiece(0, 0);
  return builder.linear(0).build();
}

/// Each rank looks up what it holds of a dim of operand 0 and contributes nothing else.
static void lookUpIn(RuleBuilder &builder, Operation *op, int64_t dim) {
  RankedTensorType table = typeOf(op->getOperand(0));
  DimFactors factors;
  if (table.getDimSize(dim) != 1) {
    factors.push_back(builder.factor(table.getDimSize(dim), FactorKind::Reducing));
    bool isBool = table.getElementType().isInteger(1);
    builder.at(factors.front()).reduction = isBool ? Reduction::Max : Reduction::Sum;
  }
  builder.operandDim(0, dim, factors).operandDimInOnePiece(0, dim);
}

ShardingRule selectRule(Operation *op) {
  int64_t selected = static_cast<int64_t>(cast<SelectOp>(op).getDim());
  RuleBuilder builder = ruleBuilder(op);
  for (auto [i, size] : llvm::enumerate(shapeOf(op->getOperand(0)))) {
    int64_t dim = static_cast<int64_t>(i);
    if (dim == selected) {
      lookUpIn(builder, op, dim);
      continue;
    }
    DimFactors factors;
    if (size != 1)
      factors.push_back(builder.factor(size));
    builder.operandDim(0, dim, factors).resultDim(0, dim < selected ? dim : dim - 1, factors);
  }
  return builder.linear(0).build();
}

ShardingRule GatherOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  ArrayRef<int64_t> self = shapeOf(getSelf()), result = shapeOf(getResult());
  builder.linear(0);
  for (auto [i, size] : llvm::enumerate(result)) {
    int64_t dim = static_cast<int64_t>(i);
    bool isGathered = dim == static_cast<int64_t>(getDim());
    // Where self has more than index asks for, the pieces of the two do not line up.
    bool lineUp = i < self.size() && self[i] == size && !ShapedType::isDynamic(size);
    if (!isGathered && !lineUp)
      continue;
    DimFactors factors;
    if (size != 1)
      factors.push_back(builder.factor(size));
    builder.operandDim(1, dim, factors).resultDim(0, dim, factors);
    if (!isGathered)
      builder.operandDim(0, dim, factors);
    else if (!self.empty())
      lookUpIn(builder, *this, dim);
  }
  return builder.build();
}

/// Of two ranks with a half each, the most rows that one lacks of what its half of the result is,
/// for each element of a factor of which the result has `count`.
static int64_t haloOf(ArrayRef<int64_t> positions, int64_t size) {
  auto count = static_cast<int64_t>(positions.size()), most = int64_t(0);
  for (int64_t rank : {0, 1}) {
    int64_t lacks = 0;
    for (const Run &rows : rowsAt(SmallVector<int64_t>(positions), chunkOfTwo(count, rank)))
      lacks += lackedOf(rows, chunkOfTwo(size, rank));
    most = std::max(most, lacks);
  }
  return ceilDiv(most * std::max(size, count), count);
}

/// The factor of a dim and of elements at positions in it that follow a line; none where there is
/// nothing to share out.
static DimFactors factorOfLine(RuleBuilder &builder, const LookupLine &line, int64_t rows,
                               int64_t count) {
  bool isKnown = !ShapedType::isDynamic(rows) && !ShapedType::isDynamic(count);
  if (rows == 1 || count == 1)
    return {};
  unsigned factor =
      builder.factor(isKnown ? std::max(rows, count) : kDynamic, FactorKind::Neighbouring);
  builder.at(factor).inOnePiece = true;
  // Rows for each element of the factor, of which the result may have fewer than there are rows.
  int64_t lacked = line.before + line.after + 1;
  builder.at(factor).haloAfter = static_cast<double>(
      line.followsSizes() ? lacked
                          : lacked * std::max<int64_t>(line.numerator / line.denominator, 1));
  return {factor};
}

ShardingRule IndexSelectOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  builder.linear(0);
  std::optional<SmallVector<int64_t>> positions = ascendingPositions(*this);
  std::optional<LookupLine> line = LookupLine::of(*this);
  for (auto [i, size] : llvm::enumerate(shapeOf(getResult()))) {
    int64_t dim = static_cast<int64_t>(i);
    DimFactors factors;
    if (positions && dim == static_cast<int64_t>(getDim())) {
      int64_t rows = shapeOf(getSelf())[dim];
      factors = {builder.factor(std::max(rows, size), FactorKind::Neighbouring)};
      builder.at(factors.front()).inOnePiece = true;
      builder.at(factors.front()).haloAfter = haloOf(*positions, rows);
      builder.operandDim(0, dim, factors).resultDim(0, dim, factors);
      continue;
    }
    if (line && !positions && dim == static_cast<int64_t>(getDim())) {
      factors = factorOfLine(builder, *line, shapeOf(getSelf())[dim], size);
      builder.operandDim(0, dim, factors).operandDim(1, 0, factors).resultDim(0, dim, factors);
      continue;
    }
    if (size != 1)
      factors.push_back(builder.factor(size));
    builder.resultDim(0, dim, factors);
    if (dim != static_cast<int64_t>(getDim())) {
      builder.operandDim(0, dim, factors);
      continue;
    }
    if (shapeOf(getSelf()).size() != 0)
      lookUpIn(builder, *this, dim);
    if (shapeOf(getIndex()).size() == 1)
      builder.operandDim(1, 0, factors);
  }
  return builder.build();
}

ShardingRule IndexOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  builder.linear(0);
  ArrayRef<int64_t> at = getIndicesAt(), result = shapeOf(getResult());
  int64_t rank = static_cast<int64_t>(shapeOf(getSelf()).size());
  int64_t common = static_cast<int64_t>(result.size()) - (rank - static_cast<int64_t>(at.size()));
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  int64_t first = adjacent ? at.front() : 0; // of the broadcast indices, in the result
  auto factorsOf = [&](int64_t resultDim) {
    DimFactors factors;
    if (result[resultDim] != 1)
      factors.push_back(builder.factor(result[resultDim]));
    builder.resultDim(0, resultDim, factors);
    return factors;
  };
  for (int64_t i = 0; i < common; ++i) {
    DimFactors factors = factorsOf(first + i);
    for (auto [operand, value] : llvm::enumerate(getIndices())) {
      ArrayRef<int64_t> shape = shapeOf(value);
      int64_t dim = i - (common - static_cast<int64_t>(shape.size()));
      if (dim >= 0)
        builder.operandDim(static_cast<unsigned>(operand) + 1, dim,
                           shape[dim] == 1 ? DimFactors{} : factors);
    }
  }
  int64_t resultDim = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (resultDim == first)
      resultDim += common;
    if (llvm::is_contained(at, i))
      lookUpIn(builder, *this, i);
    else
      builder.operandDim(0, i, factorsOf(resultDim++));
  }
  return builder.build();
}

/// A dim of self in which each rank takes what falls into its part.
static void scatterInto(RuleBuilder &builder, Operation *op, int64_t dim) {
  DimFactors factors;
  if (int64_t size = shapeOf(op->getOperand(0))[dim]; size != 1)
    factors.push_back(builder.factor(size));
  builder.operandDim(0, dim, factors).resultDim(0, dim, factors).operandDimInOnePiece(0, dim);
}

/// Of positions: what ranks write that have some of them each.
static DimFactors positionFactors(RuleBuilder &builder, int64_t size,
                                  std::optional<Reduction> reduction) {
  DimFactors factors;
  if (size == 1)
    return factors;
  factors.push_back(
      builder.factor(size, reduction ? FactorKind::Reducing : FactorKind::NeedReplication));
  if (reduction)
    builder.at(factors.front()).reduction = *reduction;
  return factors;
}

RuleBuilder scatterRule(Operation *op, int64_t scattered, std::optional<Reduction> reduction) {
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> self = shapeOf(op->getOperand(0)), index = shapeOf(op->getOperand(1)),
                    src = shapeOf(op->getOperand(2));
  for (auto [i, size] : llvm::enumerate(index)) {
    int64_t dim = static_cast<int64_t>(i);
    bool isScattered = dim == scattered;
    if (isScattered)
      scatterInto(builder, op, dim);
    // Elsewhere the pieces of index, src and self do not line up.
    if (ShapedType::isDynamic(size) || src[i] != size || (!isScattered && self[i] != size))
      continue;
    DimFactors factors;
    if (isScattered) {
      factors = positionFactors(builder, size, reduction);
    } else {
      if (size != 1)
        factors.push_back(builder.factor(size));
      builder.operandDim(0, dim, factors).resultDim(0, dim, factors);
    }
    builder.operandDim(1, dim, factors).operandDim(2, dim, factors);
  }
  return builder;
}

ShardingRule ScatterAddOp::getShardingRule() {
  return scatterRule(*this, static_cast<int64_t>(getDim()), Reduction::Sum)
      .linearJointly({0, 2})
      .additive(0)
      .build();
}

RuleBuilder indexedWriteRule(Operation *op, ArrayRef<int64_t> at,
                             std::optional<Reduction> reduction) {
  RuleBuilder builder = ruleBuilder(op);
  OperandRange indices = op->getOperands().drop_front().drop_back();
  ArrayRef<int64_t> self = shapeOf(op->getOperand(0)), values = shapeOf(op->getOperands().back());
  unsigned valuesAt = op->getNumOperands() - 1;
  int64_t rank = static_cast<int64_t>(self.size()), common = 0;
  for (Value index : indices)
    common = std::max<int64_t>(common, static_cast<int64_t>(shapeOf(index).size()));
  int64_t wholeRank = common + rank - static_cast<int64_t>(at.size());
  // Of values, which line up with what the indices name from the last dim.
  auto setValues = [&](int64_t dim, const DimFactors &factors) {
    int64_t own = dim - (wholeRank - static_cast<int64_t>(values.size()));
    if (own >= 0)
      builder.operandDim(valuesAt, own, values[own] == 1 ? DimFactors{} : factors);
  };
  bool adjacent = at.back() - at.front() + 1 == static_cast<int64_t>(at.size());
  int64_t first = adjacent ? at.front() : 0;
  for (int64_t i = 0; i < common; ++i) {
    int64_t size = 1;
    for (Value index : indices) {
      int64_t dim = i - (common - static_cast<int64_t>(shapeOf(index).size()));
      if (dim >= 0 && shapeOf(index)[dim] != 1)
        size = shapeOf(index)[dim];
    }
    DimFactors factors = positionFactors(builder, size, reduction);
    for (auto [operand, index] : llvm::enumerate(indices)) {
      ArrayRef<int64_t> shape = shapeOf(index);
      int64_t dim = i - (common - static_cast<int64_t>(shape.size()));
      if (dim >= 0)
        builder.operandDim(static_cast<unsigned>(operand) + 1, dim,
                           shape[dim] == 1 ? DimFactors{} : factors);
    }
    setValues(first + i, factors);
  }
  int64_t whole = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (whole == first)
      whole += common;
    if (llvm::is_contained(at, i)) {
      scatterInto(builder, op, i);
      continue;
    }
    DimFactors factors;
    if (int64_t size = self[i]; size != 1)
      factors.push_back(builder.factor(size));
    builder.operandDim(0, i, factors).resultDim(0, i, factors);
    setValues(whole++, factors);
  }
  return builder;
}

/// Ranks have chunks of the dim and of the values, and send what these add to elements of others.
static ShardingRule lineWriteRule(IndexPutOp op, const LookupLine &line) {
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> self = shapeOf(op.getSelf()), values = shapeOf(op.getValues());
  for (auto [i, size] : llvm::enumerate(self)) {
    auto dim = static_cast<int64_t>(i);
    DimFactors factors;
    if (dim == op.getIndicesAt().front()) {
      factors = factorOfLine(builder, line, size, values[dim]);
      builder.operandDim(1, 0, factors);
    } else if (size != 1) {
      factors.push_back(builder.factor(size));
    }
    builder.operandDim(0, dim, factors).operandDim(2, dim, factors).resultDim(0, dim, factors);
  }
  return builder.linearJointly({0, 2}).additive(0).build();
}

ShardingRule IndexPutOp::getShardingRule() {
  if (std::optional<LookupLine> line = LookupLine::of(*this))
    return lineWriteRule(*this, *line);
  return indexedWriteRule(*this, getIndicesAt(), Reduction::Sum)
      .linearJointly({0, getNumOperands() - 1})
      .additive(0)
      .build();
}

} // namespace shardc::aten
