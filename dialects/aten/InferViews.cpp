// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// Product of sizes, nothing if one is dynamic (and none is 0) or the product overflows.
static std::optional<int64_t> product(ArrayRef<int64_t> shape) {
  if (llvm::is_contained(shape, 0))
    return 0;
  int64_t result = 1;
  for (int64_t size : shape)
    if (ShapedType::isDynamic(size) || llvm::MulOverflow(result, size, result))
      return std::nullopt;
  return result;
}

LogicalResult ViewOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  Shape shape(op.getStaticSize());
  if (failed(inference.checkDynamicList(shape, op.getSize(), "size")))
    return failure();
  std::optional<int64_t> before = product(type.getShape()), after = product(shape);
  if (before && after && *before != *after)
    return inference.error("turns ", *before, " elements into ", *after);
  return inference.result(shape, type.getElementType());
}

LogicalResult ExpandOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  Shape shape(op.getStaticSize());
  if (failed(inference.checkDynamicList(shape, op.getSize(), "size")))
    return failure();
  int64_t added = static_cast<int64_t>(shape.size()) - type.getRank();
  if (added < 0)
    return inference.error("size has ", shape.size(), " entries for a tensor of ", type.getRank(),
                           " dims");
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    int64_t &target = shape[added + i];
    if (size == 1 || ShapedType::isDynamic(size))
      continue;
    if (!ShapedType::isDynamic(target) && target != size)
      return inference.error("cannot repeat dim ", i, " of size ", size, " to size ", target);
    target = size;
  }
  return inference.result(shape, type.getElementType());
}

LogicalResult PermuteOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (static_cast<int64_t>(op.getDims().size()) != type.getRank())
    return inference.error("dims has ", op.getDims().size(), " entries for a tensor of ",
                           type.getRank(), " dims");
  if (failed(inference.checkDims(op.getDims(), type.getRank(), "dims")))
    return failure();
  Shape shape;
  for (int64_t dim : op.getDims())
    shape.push_back(type.getDimSize(dim));
  return inference.result(shape, type.getElementType());
}

LogicalResult TransposeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  int64_t dim0 = op.getDim0(), dim1 = op.getDim1();
  if (failed(inference.checkDim(dim0, type.getRank(), "dim0")) ||
      failed(inference.checkDim(dim1, type.getRank(), "dim1")))
    return failure();
  Shape shape(type.getShape());
  if (!shape.empty())
    std::swap(shape[dim0], shape[dim1]);
  return inference.result(shape, type.getElementType());
}

LogicalResult UnsqueezeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank() + 1, "dim")))
    return failure();
  Shape shape(type.getShape());
  shape.insert(shape.begin() + op.getDim(), 1);
  return inference.result(shape, type.getElementType());
}

LogicalResult SqueezeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDims(op.getDim(), type.getRank(), "dim")))
    return failure();
  Shape shape;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    if (!llvm::is_contained(op.getDim(), static_cast<int64_t>(i)))
      shape.push_back(size);
    else if (size != 1 && !ShapedType::isDynamic(size))
      return inference.error("cannot remove dim ", i, " of size ", size);
  }
  return inference.result(shape, type.getElementType());
}

LogicalResult FlipOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDims(op.getDims(), type.getRank(), "dims")))
    return failure();
  return inference.result(type.getShape(), type.getElementType());
}

LogicalResult ConstantPadNdOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  ArrayRef<int64_t> pad = op.getPad();
  if (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size() / 2) > type.getRank())
    return inference.error("pad has ", pad.size(), " entries for a tensor of ", type.getRank(),
                           " dims");
  Shape shape(type.getShape());
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t &size = shape[shape.size() - 1 - i];
    if (ShapedType::isDynamic(size))
      continue;
    size += pad[2 * i] + pad[2 * i + 1];
    if (size < 0)
      return inference.error("pad cuts more from dim ", shape.size() - 1 - i, " than there is");
  }
  return inference.result(shape, type.getElementType());
}

} // namespace shardc::aten
