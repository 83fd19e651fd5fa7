// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"

using namespace mlir;

namespace shardc::aten {

/// Letters for `count` leading dims: A, B, ... Ops with more dims than letters are not sharded.
static std::optional<std::string> leadingLetters(size_t count) {
  if (count > 26)
    return std::nullopt;
  std::string letters;
  for (size_t i = 0; i < count; ++i)
    letters.push_back(static_cast<char>('A' + i));
  return letters;
}

static size_t rankOf(Value value) { return shapeOf(value).size(); }

RuleBuilder &addsTo(RuleBuilder &builder, unsigned sum, unsigned lhs, unsigned rhs) {
  return builder.linearJointly({sum, lhs}).linearJointly({sum, rhs}).additive(sum);
}

ShardingRule linearRule(Operation *op) {
  auto linear = cast<LinearOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  std::optional<std::string> batch = leadingLetters(rankOf(linear.getInput()) - 1);
  if (!batch)
    return builder.replicateAll().build();
  std::string out = rankOf(linear.getWeight()) == 2 ? "o" : "";
  std::string result = *batch + out;
  std::vector<std::string> operands = {*batch + "i", out + "i"};
  if (!linear.getBias()) {
    builder.einsum(operands, {result}).linear(0).linear(1);
    return builder.build();
  }
  operands.push_back(result.substr(result.size() - rankOf(linear.getBias())));
  builder.einsum(operands, {result});
  return addsTo(builder, 2, 0, 1).build();
}

ShardingRule matmulRule(Operation *op) { return ruleBuilder(op).matmul().build(); }

ShardingRule productRule(Operation *op) {
  std::string batch = rankOf(op->getResult(0)) == 3 ? "b" : "";
  return ruleBuilder(op)
      .einsum({batch + "mk", batch + "kn"}, {batch + "mn"})
      .linear(0)
      .linear(1)
      .build();
}

ShardingRule sumWithProductRule(Operation *op) {
  std::string batch = rankOf(op->getResult(0)) == 3 ? "b" : "", result = batch + "mn";
  RuleBuilder builder = ruleBuilder(op);
  builder.einsum(
      {result.substr(result.size() - rankOf(op->getOperand(0))), batch + "mk", batch + "kn"},
      {result});
  return addsTo(builder, 0, 1, 2).build();
}

ShardingRule attentionRule(Operation *op) {
  auto attention = cast<ScaledDotProductAttentionOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  size_t rank = rankOf(attention.getResult());
  std::optional<std::string> batch = leadingLetters(rank - 2);
  if (!batch)
    return builder.replicateAll().build();
  // All operands line up from the last dim; those with fewer dims are broadcast.
  auto last = [](const std::string &dims, Value value) {
    return dims.substr(dims.size() - rankOf(value));
  };
  std::string heads = *batch, keyHeads = *batch;
  if (attention.getEnableGqa()) {
    // A query head is (key head, position in its group), in this order.
    std::string outer = batch->substr(0, batch->size() - 1);
    heads = outer + "(kg)";
    keyHeads = outer + "k";
    if (rankOf(attention.getQuery()) != rank || rankOf(attention.getKey()) != rank ||
        rankOf(attention.getValue()) != rank || attention.getAttnMask())
      return builder.replicateAll().build();
    builder.einsum({heads + "le", keyHeads + "se", keyHeads + "sf"}, {heads + "lf"});
  } else {
    std::vector<std::string> operands = {last(heads + "le", attention.getQuery()),
                                         last(heads + "se", attention.getKey()),
                                         last(heads + "sf", attention.getValue())};
    if (Value mask = attention.getAttnMask())
      operands.push_back(last(heads + "ls", mask));
    builder.einsum(operands, {heads + "lf"});
  }
  // The softmax is over whole rows of scores.
  builder.letter('e', FactorKind::NeedReplication).letter('s', FactorKind::NeedReplication);
  return builder.linear(2).build();
}

ShardingRule embeddingRule(Operation *op) {
  RuleBuilder builder = ruleBuilder(op);
  std::optional<std::string> batch = leadingLetters(rankOf(op->getOperand(1)));
  if (!batch)
    return builder.replicateAll().build();
  return builder.einsum({"ve", *batch}, {*batch + "e"}).linear(0).build();
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
  builder.operandDim(0, dim, factors);
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

ShardingRule gatherRule(Operation *op) {
  auto gather = cast<GatherOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> self = shapeOf(gather.getSelf()), result = shapeOf(gather.getResult());
  builder.linear(0);
  for (auto [i, size] : llvm::enumerate(result)) {
    int64_t dim = static_cast<int64_t>(i);
    bool isGathered = dim == static_cast<int64_t>(gather.getDim());
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
      lookUpIn(builder, op, dim);
  }
  return builder.build();
}

ShardingRule indexSelectRule(Operation *op) {
  auto select = cast<IndexSelectOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  builder.linear(0);
  for (auto [i, size] : llvm::enumerate(shapeOf(select.getResult()))) {
    int64_t dim = static_cast<int64_t>(i);
    DimFactors factors;
    if (size != 1)
      factors.push_back(builder.factor(size));
    builder.resultDim(0, dim, factors);
    if (dim != static_cast<int64_t>(select.getDim())) {
      builder.operandDim(0, dim, factors);
      continue;
    }
    if (rankOf(select.getSelf()) != 0)
      lookUpIn(builder, op, dim);
    if (rankOf(select.getIndex()) == 1)
      builder.operandDim(1, 0, factors);
  }
  return builder.build();
}

ShardingRule indexRule(Operation *op) {
  auto index = cast<IndexOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  builder.linear(0);
  ArrayRef<int64_t> at = index.getIndicesAt(), result = shapeOf(index.getResult());
  int64_t rank = static_cast<int64_t>(rankOf(index.getSelf()));
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
    for (auto [operand, value] : llvm::enumerate(index.getIndices())) {
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
      lookUpIn(builder, op, i);
    else
      builder.operandDim(0, i, factorsOf(resultDim++));
  }
  return builder.build();
}

} // namespace shardc::aten
