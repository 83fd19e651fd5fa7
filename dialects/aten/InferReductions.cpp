// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

static LogicalResult reduced(Inference &inference, Value self,
                             std::optional<ArrayRef<int64_t>> dims, bool keepdim,
                             Type elementType) {
  Shape whole = inference.sizesOf(self), shape;
  ArrayRef<int64_t> list = dims.value_or(ArrayRef<int64_t>());
  if (failed(inference.checkDims(list, whole.size(), "dim")))
    return failure();
  for (auto [i, size] : llvm::enumerate(whole)) {
    if (!list.empty() && !llvm::is_contained(list, static_cast<int64_t>(i)))
      shape.push_back(size);
    else if (keepdim)
      shape.push_back(1);
  }
  return inference.result(shape, elementType);
}

LogicalResult inferReduction(Inference &inference, Value self,
                             std::optional<ArrayRef<int64_t>> dims, bool keepdim,
                             Type elementType) {
  return reduced(inference, self, dims, keepdim, elementType);
}

LogicalResult inferExtremumOf(Inference &inference, Value self,
                              std::optional<ArrayRef<int64_t>> dims, bool keepdim,
                              Type elementType) {
  Shape shape = inference.sizesOf(self);
  ArrayRef<int64_t> list = dims.value_or(ArrayRef<int64_t>());
  bool empty = llvm::any_of(llvm::enumerate(shape), [&](auto entry) {
    bool isReduced = list.empty() || llvm::is_contained(list, static_cast<int64_t>(entry.index()));
    return isReduced && entry.value().is(0);
  });
  if (empty)
    return inference.error("reduces no elements, and has no value for that");
  return reduced(inference, self, dims, keepdim, elementType);
}

LogicalResult CumsumOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank(), "dim")))
    return failure();
  return inference.result(inference.sizesOf(op.getSelf()),
                          sumType(type.getElementType(), op.getDtype()));
}

} // namespace shardc::aten
