// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/IndexedWrites.h"
#include "dialects/aten/Rules.h"
#include "dialects/aten/Writing.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Writing.cpp.inc"

namespace shardc::aten {

LogicalResult ScatterOp::infer(Inference &inference, Adaptor op) {
  if (!llvm::is_contained({"assign", "prod", "amax", "amin"}, op.getReduce()))
    return inference.error("has no way \"", op.getReduce(),
                           "\" to write; it must be one of \"assign\", \"prod\", \"amax\", \"amin\"");
  return inferScatter(inference, op.getSelf(), static_cast<int64_t>(op.getDim()), op.getIndex(),
                      op.getSrc());
}

ShardingRule ScatterOp::getShardingRule() {
  StringRef reduce = getReduce();
  std::optional<Reduction> reduction;
  // An element of self that counts on each rank changes neither.
  if (reduce == "amax")
    reduction = Reduction::Max;
  else if (reduce == "amin")
    reduction = Reduction::Min;
  RuleBuilder builder = scatterRule(*this, static_cast<int64_t>(getDim()), reduction);
  if (reduce == "assign")
    builder.linearJointly({0, 2});
  return builder.build();
}

LogicalResult IndexWriteOp::infer(Inference &inference, Adaptor op) {
  return inferIndexedWrite(inference, op.getSelf(), op.getIndices(), op.getValues(),
                           op.getIndicesAt());
}

ShardingRule IndexWriteOp::getShardingRule() {
  return indexedWriteRule(*this, getIndicesAt(), std::nullopt)
      .linearJointly({0, getNumOperands() - 1})
      .build();
}

} // namespace shardc::aten
