// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Rules.h"
#include "dialects/aten/Sorting.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Sorting.cpp.inc"

namespace shardc::aten {

LogicalResult SortOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getSelf());
  if (shape.empty())
    return inference.error("needs a tensor of at least one dim");
  auto dim = static_cast<int64_t>(op.getDim());
  if (failed(inference.checkDim(dim, shape.size(), "dim")))
    return failure();
  if (std::optional<uint64_t> count = op.getCount()) {
    std::optional<int64_t> size = shape[dim].number();
    auto kept = static_cast<int64_t>(*count);
    if (size && kept > *size)
      return inference.error("keeps ", kept, " elements of a dim of size ", *size);
    shape[dim] = Dim(kept);
  }
  if (failed(inference.result(shape, elementTypeOf(op.getSelf()))))
    return failure();
  return inference.result(shape, IntegerType::get(inference.getContext(), 64));
}

ShardingRule SortOp::getShardingRule() {
  RuleBuilder builder = ruleBuilder(*this);
  for (auto [i, size] : llvm::enumerate(shapeOf(getSelf()))) {
    int64_t dim = static_cast<int64_t>(i);
    if (size == 1)
      continue;
    if (dim == static_cast<int64_t>(getDim())) {
      // The first elements of each rank, and where they are. Whether a rank has as many is not
      // known of a dim of unknown size.
      if (std::optional<uint64_t> count = getCount(); count && !ShapedType::isDynamic(size)) {
        DimFactors factors{builder.factor(size, FactorKind::Cooperative)};
        builder.at(factors.front()).exchange = 2 * static_cast<int64_t>(*count);
        builder.operandDim(0, dim, factors).operandDimInOnePiece(0, dim);
      }
      continue;
    }
    DimFactors factors{builder.factor(size)};
    builder.operandDim(0, dim, factors).resultDim(0, dim, factors).resultDim(1, dim, factors);
  }
  return builder.build();
}

} // namespace shardc::aten
