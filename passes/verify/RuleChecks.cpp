// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/StageChecks.h"

#include "dialects/interfaces/OpInterfaces.h"
#include "passes/verify/core/RuleCheck.h"

using namespace mlir;
using namespace shardc;

static PlacedTensor placedTensor(Type type) {
  dist::LayoutAttr layout = dist::getLayout(type);
  if (!layout)
    return {};
  return {&layout.getValue(), cast<RankedTensorType>(type).getShape().vec()};
}

const std::vector<std::string> &RuleChecks::errorsOf(Operation *op, ShardingRule rule) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  size_t hash = rule.hash();
  for (Type type : types)
    hash = hashCombine(hash, mlir::hash_value(type));
  auto [begin, end] = known.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry)
    if (entry->second.types == types && entry->second.rule == rule)
      return entry->second.errors;
  ++numDistinct;
  std::vector<PlacedTensor> operands, results;
  for (Type type : op->getOperandTypes())
    operands.push_back(placedTensor(type));
  for (Type type : op->getResultTypes())
    results.push_back(placedTensor(type));
  std::vector<std::string> errors = checkRule(rule, operands, results);
  auto inserted = known.emplace(hash, Known{std::move(rule), std::move(types), std::move(errors)});
  return inserted->second.errors;
}

void RuleChecks::check(Operation *op) {
  auto isPlaced = [](Type type) { return !isa<TensorType>(type) || dist::getLayout(type); };
  if (!llvm::all_of(op->getOperandTypes(), isPlaced) ||
      !llvm::all_of(op->getResultTypes(), isPlaced))
    return; // reported already, or (half-placed) still to be placed
  // Without a tensor among its results an op asks for a size, which is the global one.
  if (llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>))
    return;
  auto withRule = dyn_cast<ShardingRuleOpInterface>(op);
  if (!withRule) {
    auto isReplicated = [](Type type) {
      return !isa<TensorType>(type) || dist::getLayout(type).getValue().isFullyReplicated();
    };
    if (!llvm::all_of(op->getOperandTypes(), isReplicated) ||
        !llvm::all_of(op->getResultTypes(), isReplicated))
      violations.add(op, "has no sharding rule, so everything it touches must be replicated");
    return;
  }
  for (const std::string &error : errorsOf(op, withRule.getShardingRule()))
    violations.add(op, error);
}
