// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/OwnRows.h"

#include "dialects/aten/Grouped.h"
#include "dialects/interfaces/IdentityOpInterface.h"
#include "dialects/interfaces/TensorView.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace shardc::aten {

Value lookThroughIdentities(Value value) {
  while (auto identity = value.getDefiningOp<IdentityOpInterface>())
    value = identity.getIdentitySource();
  return value;
}

bool worksRowByRow(Operation *op) {
  if (!isMemoryEffectFree(op) || isa<TrilOp, TriuOp>(op))
    return false;
  if (isa<IdentityOpInterface>(op) || viewKindOf(op))
    return true;
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && llvm::is_contained({KernelForm::Elementwise, KernelForm::Rows, KernelForm::Scan,
                                       KernelForm::Product},
                                      kernel.getKernelForm());
}

std::optional<int64_t> dimOfFactor(const TensorFactors &tensor, unsigned factor) {
  std::optional<int64_t> found;
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (!llvm::is_contained(factors, factor))
      continue;
    if (factors.size() != 1 || found)
      return std::nullopt;
    found = static_cast<int64_t>(dim);
  }
  return found;
}

std::optional<SmallVector<int64_t>> rowDimsOfResults(Operation *op, unsigned operand, int64_t dim) {
  if (isa<IdentityOpInterface>(op))
    return SmallVector<int64_t>{dim};
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || !isMemoryEffectFree(op))
    return std::nullopt;
  ShardingRule rule = ruled.getShardingRule();
  const DimFactors &factors = rule.operands[operand][dim];
  if (factors.size() != 1 || rule.factors[factors.front()].kind != FactorKind::Parallel)
    return std::nullopt;
  SmallVector<int64_t> dims;
  for (const TensorFactors &result : rule.results) {
    std::optional<int64_t> found = dimOfFactor(result, factors.front());
    if (!found)
      return std::nullopt;
    dims.push_back(*found);
  }
  return dims;
}

/// Whether the op passes over rows of this operand whose index names no matrix that it has.
static bool readsOwnRows(const RowUse &use, Value index) {
  if (auto product = dyn_cast<IndexedMmOp>(use.op))
    return use.operand == 0 && use.dim == 0 && lookThroughIdentities(product.getIndex()) == index;
  if (auto sums = dyn_cast<IndexedOuterOp>(use.op))
    return use.operand < 2 && use.dim == 0 && lookThroughIdentities(sums.getIndex()) == index;
  // Of what is added at the rows that an index names (the gradients of biases), a rank takes what
  // falls into its own.
  if (auto put = dyn_cast<IndexPutOp>(use.op)) {
    ArrayRef<int64_t> values = shapeOf(put.getValues());
    return put.getIndicesAt() == ArrayRef<int64_t>(0) && use.dim == 0 &&
           use.operand + 1 == put->getNumOperands() &&
           values.size() == shapeOf(put.getSelf()).size() &&
           shapeOf(put.getIndices().front()) == values.take_front() &&
           lookThroughIdentities(put.getIndices().front()) == index;
  }
  return false;
}

bool OwnRows::readByOwners(Value tensor, int64_t dim, Value index) {
  auto [entry, isNew] = known.try_emplace({tensor, index}, dim, false);
  if (!isNew)
    return entry->second.first == dim && entry->second.second;
  bool all = !tensor.use_empty() && isWhole(tensor);
  for (OpOperand &use : tensor.getUses()) {
    Operation *user = use.getOwner();
    if (readsOwnRows({user, use.getOperandNumber(), dim}, index)) {
      all &= isOwner(user);
      continue;
    }
    std::optional<SmallVector<int64_t>> dims = rowDimsOfResults(user, use.getOperandNumber(), dim);
    all = all && dims;
    for (unsigned i = 0; all && i < user->getNumResults(); ++i)
      all = user->getResult(i).use_empty() || readByOwners(user->getResult(i), (*dims)[i], index);
    if (!all)
      break;
  }
  known[{tensor, index}] = {dim, all};
  return all;
}

Value OwnRows::ownersOf(Value tensor, int64_t dim, llvm::function_ref<bool(Value)> isPartial) {
  Operation *op = tensor.getDefiningOp();
  if (!op)
    return nullptr;
  if (auto product = dyn_cast<IndexedMmOp>(op); product && isOwner(op))
    return dim == 0 ? lookThroughIdentities(product.getIndex()) : Value();
  if (auto lookup = dyn_cast<IndexOp>(op); lookup && isOwner(op)) {
    bool ofRows = lookup.getIndicesAt() == ArrayRef<int64_t>(0) && dim == 0 &&
                  shapeOf(lookup.getIndices().front()).size() == 1;
    return ofRows ? lookThroughIdentities(lookup.getIndices().front()) : Value();
  }
  if (auto identity = dyn_cast<IdentityOpInterface>(op)) {
    Value source = identity.getIdentitySource();
    return isPartial(source) ? ownersOf(source, dim, isPartial) : Value();
  }
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled || !isMemoryEffectFree(op))
    return nullptr;
  ShardingRule rule = ruled.getShardingRule();
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  const DimFactors &factors = rule.results[number][dim];
  if (factors.size() != 1 || rule.factors[factors.front()].kind != FactorKind::Parallel)
    return nullptr;
  Value owners;
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()) || !isPartial(operand.get()))
      continue;
    std::optional<int64_t> own =
        dimOfFactor(rule.operands[operand.getOperandNumber()], factors.front());
    Value found = own ? ownersOf(operand.get(), *own, isPartial) : Value();
    if (!found || (owners && owners != found))
      return nullptr;
    owners = found;
  }
  return owners;
}

} // namespace shardc::aten
