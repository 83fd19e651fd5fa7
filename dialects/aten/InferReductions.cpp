// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

static LogicalResult reduced(Inference &inference, Value self,
                             std::optional<ArrayRef<int64_t>> dims, bool keepdim,
                             Type elementType) {
  RankedTensorType type = typeOf(self);
  ArrayRef<int64_t> list = dims.value_or(ArrayRef<int64_t>());
  if (failed(inference.checkDims(list, type.getRank(), "dim")))
    return failure();
  Shape shape;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
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

static bool hasStaticSize(RankedTensorType type, int64_t dim, int64_t size) {
  return dim < type.getRank() && type.getDimSize(dim) == size;
}

LogicalResult inferExtremumOf(Inference &inference, Value self,
                              std::optional<ArrayRef<int64_t>> dims, bool keepdim,
                              Type elementType) {
  RankedTensorType type = typeOf(self);
  ArrayRef<int64_t> list = dims.value_or(ArrayRef<int64_t>());
  bool empty =
      list.empty() ? llvm::is_contained(type.getShape(), 0) : llvm::any_of(list, [&](int64_t dim) {
        return dim >= 0 && hasStaticSize(type, dim, 0);
      });
  if (empty)
    return inference.error("reduces no elements, and has no value for that");
  return reduced(inference, self, dims, keepdim, elementType);
}

LogicalResult CumsumOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank(), "dim")))
    return failure();
  return inference.result(type.getShape(), sumType(type.getElementType(), op.getDtype()));
}

} // namespace shardc::aten
