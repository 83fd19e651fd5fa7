// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"

#include "dialects/dist/FindMesh.h"
#include "dialects/interfaces/OpInterfaces.h"
#include "passes/collectives/analysis/Transfers.h"
#include "passes/collectives/analysis/Uniformity.h"
#include "passes/collectives/simplify/Pairs.h"

#include "mlir/IR/IRMapping.h"

namespace shardc {
#define GEN_PASS_DEF_MOVEPRODUCTS
#include "passes/collectives/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

namespace {

/// The only dim of a tensor that is made of this factor alone; nothing where another has it too.
std::optional<unsigned> onlyDimOf(const TensorFactors &dims, unsigned factor) {
  std::optional<unsigned> found;
  for (unsigned dim = 0; dim != dims.size(); ++dim)
    if (llvm::is_contained(dims[dim], factor)) {
      if (found || dims[dim].size() != 1)
        return std::nullopt;
      found = dim;
    }
  return found;
}

uint64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

struct MoveProducts : shardc::impl::MoveProductsBase<MoveProducts> {
  using MoveProductsBase::MoveProductsBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        move(function);
  }

private:
  void move(func::FuncOp function) {
    AsyncPairs pairs(function.getBody());
    pairs.join();
    RankValues ranks(findMesh(function).value_or(Mesh()), &getContext());
    Uniformity uniformity(ranks);
    auto erase = [&](Operation *op) {
      ranks.forget(op);
      uniformity.forget(op);
      pairs.forget(op);
      op->erase();
    };
    SmallVector<AllGatherOp> gathers;
    function.walk([&](AllGatherOp op) { gathers.push_back(op); });
    while (!gathers.empty()) {
      AllGatherOp gather = gathers.pop_back_val();
      if (Operation *product = productThatGathersLess(gather, uniformity)) {
        gathers.push_back(moveAcross(gather, product, erase));
        ++numMoved;
      }
    }
    pairs.split();
  }

  /// The product that alone reads what is gathered, if it can run before and makes less.
  static Operation *productThatGathersLess(AllGatherOp gather, Uniformity &uniformity) {
    if (gather->getNumResults() != 1 || CollectiveOpInterface(gather).isAsync() ||
        !gather->hasOneUse())
      return nullptr;
    OpOperand &use = *gather->use_begin();
    Operation *product = use.getOwner();
    auto kernel = dyn_cast<KernelOpInterface>(product);
    auto rules = dyn_cast<ShardingRuleOpInterface>(product);
    if (!kernel || kernel.getKernelForm() != KernelForm::Product || !rules)
      return nullptr;
    auto whole = cast<RankedTensorType>(gather->getResult(0).getType());
    auto result = cast<RankedTensorType>(product->getResult(0).getType());
    if (!whole.hasStaticShape() || !result.hasStaticShape() || bytesOf(result) >= bytesOf(whole))
      return nullptr;
    ShardingRule rule = rules.getShardingRule();
    if (!resultDimOf(rule, use.getOperandNumber(), gather.getDims()[0]))
      return nullptr;
    for (OpOperand &other : product->getOpOperands())
      if (&other != &use && !uniformity.isUniform(other.get(), gather.getGroup()))
        return nullptr;
    return product;
  }

  /// The dim of the result that has the rows of a dim of an operand, if no other operand has them.
  static std::optional<unsigned> resultDimOf(const ShardingRule &rule, unsigned operand,
                                             unsigned dim) {
    if (rule.operands[operand][dim].size() != 1)
      return std::nullopt;
    unsigned factor = rule.operands[operand][dim].front();
    if (rule.factors[factor].kind != FactorKind::Parallel)
      return std::nullopt;
    for (unsigned i = 0; i != rule.operands.size(); ++i)
      for (unsigned d = 0; d != rule.operands[i].size(); ++d)
        if ((i != operand || d != dim) && llvm::is_contained(rule.operands[i][d], factor))
          return std::nullopt;
    return onlyDimOf(rule.results[0], factor);
  }

  template <typename Erase>
  static AllGatherOp moveAcross(AllGatherOp gather, Operation *product, Erase erase) {
    OpOperand &use = *gather->use_begin();
    Transfer transfer = getTransfer(gather, 0);
    auto shard = cast<RankedTensorType>(transfer.tensor.getType());
    auto result = cast<RankedTensorType>(product->getResult(0).getType());
    unsigned dim = *resultDimOf(cast<ShardingRuleOpInterface>(product).getShardingRule(),
                                use.getOperandNumber(), transfer.concatDim);
    OpBuilder builder(product);
    IRMapping mapping;
    mapping.map(gather->getResult(0), transfer.tensor);
    Operation *part = builder.clone(*product, mapping);
    SmallVector<int64_t> shape(result.getShape());
    shape[dim] = shard.getDimSize(transfer.concatDim);
    part->getResult(0).setType(result.clone(shape));
    transfer.tensor = part->getResult(0);
    transfer.concatDim = dim;
    transfer.result = result;
    Value whole = buildAllGather(builder, gather.getLoc(), gather.getGroup(), transfer);
    product->getResult(0).replaceAllUsesWith(whole);
    erase(product);
    erase(gather);
    return whole.getDefiningOp<AllGatherOp>();
  }
};

} // namespace
