// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Rules.h"

using namespace mlir;

namespace shardc::aten {

std::optional<std::string> leadingLetters(size_t count) {
  if (count > 26)
    return std::nullopt;
  std::string letters;
  for (size_t i = 0; i < count; ++i)
    letters.push_back(static_cast<char>('A' + i));
  return letters;
}

size_t rankOf(Value value) { return shapeOf(value).size(); }

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

ShardingRule tensordotRule(Operation *op) {
  auto product = cast<TensordotOp>(op);
  RuleBuilder builder = ruleBuilder(op);
  size_t summed = product.getDimsSelf().size();
  std::optional<std::string> letters = leadingLetters(summed);
  if (!letters || rankOf(product.getResult()) > 26)
    return builder.replicateAll().build();
  std::string result;
  SmallVector<std::string> operands;
  char next = 'a';
  for (unsigned i = 0; i < 2; ++i) {
    std::string &dims = operands.emplace_back(rankOf(op->getOperand(i)), ' ');
    ArrayRef<int64_t> over = i == 0 ? product.getDimsSelf() : product.getDimsOther();
    for (auto [letter, dim] : llvm::zip_equal(*letters, over))
      dims[dim] = letter;
    for (int64_t dim : product.getFreeDims(i))
      result.push_back(dims[dim] = next++);
  }
  return builder.einsum({operands[0], operands[1]}, {result}).linear(0).linear(1).build();
}

} // namespace shardc::aten
