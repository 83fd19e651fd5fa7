// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// Number of index operands against the dynamic entries of the static list; no negative size.
static LogicalResult checkMixedList(Inference &inference, ArrayRef<int64_t> values, size_t operands,
                                    StringRef name) {
  size_t dynamic = llvm::count_if(values, ShapedType::isDynamic);
  if (dynamic != operands)
    return inference.error(name, " has ", dynamic, " dynamic entries but ", operands,
                           " index operands");
  for (int64_t value : values)
    if (!ShapedType::isDynamic(value) && value < 0)
      return inference.error(name, " has the negative entry ", value);
  return success();
}

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
  if (failed(checkMixedList(inference, shape, op.getSize().size(), "size")))
    return failure();
  std::optional<int64_t> before = product(type.getShape()), after = product(shape);
  if (before && after && *before != *after)
    return inference.error("turns ", *before, " elements into ", *after);
  return inference.result(shape, type.getElementType());
}

LogicalResult ExpandOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  Shape shape(op.getStaticSize());
  if (failed(checkMixedList(inference, shape, op.getSize().size(), "size")))
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

} // namespace shardc::aten
