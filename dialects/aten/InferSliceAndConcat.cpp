// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"

using namespace mlir;

namespace shardc::aten {

/// Python's rule for a slice bound.
static int64_t clipBound(int64_t bound, int64_t size) {
  if (bound < 0)
    bound += size;
  return std::clamp<int64_t>(bound, 0, size);
}

LogicalResult SliceOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  int64_t start = op.getStaticStart(), end = op.getStaticEnd(), step = op.getStep();
  int64_t dim = op.getDim();
  if (type.getRank() == 0)
    return inference.error("needs a tensor of at least one dim");
  if (failed(inference.checkDim(dim, type.getRank(), "dim")) ||
      failed(inference.checkDynamic(start, op.getStart(), "start")) ||
      failed(inference.checkDynamic(end, op.getEnd(), "end")))
    return failure();
  if (step <= 0)
    return inference.error("step is ", step, "; it must be positive");
  Shape shape(type.getShape());
  int64_t size = shape[dim];
  shape[dim] = ShapedType::kDynamic;
  if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(start) &&
      !ShapedType::isDynamic(end)) {
    start = clipBound(start, size);
    end = std::max(start, clipBound(end, size));
    shape[dim] = llvm::divideCeil(static_cast<uint64_t>(end - start), static_cast<uint64_t>(step));
  } else if (ShapedType::isDynamic(size) && start == 0 && step == 1 &&
             end == std::numeric_limits<int64_t>::max()) {
    shape[dim] = size;
  }
  return inference.result(shape, type.getElementType());
}

LogicalResult SliceOp::canonicalize(SliceOp op, PatternRewriter &rewriter) {
  int64_t size = typeOf(op.getSelf()).getDimSize(op.getDim());
  int64_t start = op.getStaticStart(), end = op.getStaticEnd();
  if (ShapedType::isDynamic(size))
    return failure();
  int64_t newStart = ShapedType::isDynamic(start) ? start : clipBound(start, size);
  int64_t newEnd = ShapedType::isDynamic(end) ? end : clipBound(end, size);
  if (newStart == start && newEnd == end)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.setStaticStart(newStart);
    op.setStaticEnd(newEnd);
  });
  return success();
}

LogicalResult SelectOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  int64_t index = op.getStaticIndex(), dim = op.getDim();
  if (type.getRank() == 0)
    return inference.error("needs a tensor of at least one dim");
  if (failed(inference.checkDim(dim, type.getRank(), "dim")) ||
      failed(inference.checkDynamic(index, op.getIndex(), "index")))
    return failure();
  int64_t size = type.getDimSize(dim);
  if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(index) &&
      (index < -size || index >= size))
    return inference.error("index ", index, " is out of range for dim ", dim, " of size ", size);
  Shape shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return inference.result(shape, type.getElementType());
}

LogicalResult SplitWithSizesOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  ArrayRef<int64_t> sizes = op.getStaticSplitSizes();
  int64_t dim = op.getDim();
  if (type.getRank() == 0)
    return inference.error("needs a tensor of at least one dim");
  if (failed(inference.checkDim(dim, type.getRank(), "dim")) ||
      failed(inference.checkDynamicList(sizes, op.getSplitSizes(), "split_sizes")))
    return failure();
  int64_t size = type.getDimSize(dim), total = 0;
  for (int64_t part : sizes) {
    Shape shape(type.getShape());
    shape[dim] = part;
    if (failed(inference.result(shape, type.getElementType())))
      return failure();
    total = ShapedType::isDynamic(part) || ShapedType::isDynamic(total) ? ShapedType::kDynamic
                                                                        : total + part;
  }
  return inference.same(total, size, "sum of split_sizes and size of dim");
}

/// Types of tensors that must agree in all sizes except that of `except` (-1: none).
static FailureOr<Shape> unite(Inference &inference, ValueRange tensors, int64_t except) {
  Shape shape(shapeOf(tensors.front()));
  for (Value tensor : tensors.drop_front()) {
    ArrayRef<int64_t> other = shapeOf(tensor);
    if (other.size() != shape.size())
      return inference.error("tensors have ", shape.size(), " and ", other.size(), " dims");
    for (auto [i, size] : llvm::enumerate(other)) {
      if (static_cast<int64_t>(i) == except)
        continue;
      FailureOr<int64_t> common = inference.same(shape[i], size, "sizes of tensors");
      if (failed(common))
        return failure();
      shape[i] = *common;
    }
  }
  return shape;
}

LogicalResult CatOp::infer(Inference &inference, Adaptor op) {
  if (op.getTensors().empty())
    return inference.error("needs at least one tensor");
  SmallVector<Value> parts = partsOfCat(op.getTensors());
  int64_t dim = op.getDim(), rank = rankOfCat(op.getTensors());
  if (rank == 0)
    return inference.error("needs tensors of at least one dim");
  if (failed(inference.checkDim(dim, rank, "dim")))
    return failure();
  FailureOr<Shape> shape = unite(inference, parts, dim);
  FailureOr<Type> type = inference.promote(op.getTensors());
  if (failed(shape) || failed(type))
    return failure();
  int64_t &total = (*shape)[dim];
  for (Value tensor : ArrayRef(parts).drop_front()) {
    int64_t size = shapeOf(tensor)[dim];
    total = ShapedType::isDynamic(total) || ShapedType::isDynamic(size) ? ShapedType::kDynamic
                                                                        : total + size;
  }
  return inference.result(*shape, *type);
}

LogicalResult StackOp::infer(Inference &inference, Adaptor op) {
  if (op.getTensors().empty())
    return inference.error("needs at least one tensor");
  int64_t dim = op.getDim(), rank = shapeOf(op.getTensors().front()).size();
  if (failed(inference.checkDim(dim, rank + 1, "dim")))
    return failure();
  FailureOr<Shape> shape = unite(inference, op.getTensors(), -1);
  FailureOr<Type> type = inference.promote(op.getTensors());
  if (failed(shape) || failed(type))
    return failure();
  shape->insert(shape->begin() + dim, static_cast<int64_t>(op.getTensors().size()));
  return inference.result(*shape, *type);
}

} // namespace shardc::aten
