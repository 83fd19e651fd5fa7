// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"
#include "dialects/aten/Concatenation.h"
#include "dialects/aten/SliceRange.h"

#include <numeric>

using namespace mlir;

namespace shardc::aten {

/// Python's rule for a slice bound.
static int64_t clipBound(int64_t bound, int64_t size) {
  if (bound < 0)
    bound += size;
  return std::clamp<int64_t>(bound, 0, size);
}

SliceRange sliceRange(SizeAlgebra &sizes, Dim start, Dim end, int64_t step, Dim size) {
  // A bound as large as that is "to the end": it must not be calculated with.
  auto clip = [&](Dim bound) {
    if (bound.is(std::numeric_limits<int64_t>::max()))
      return size;
    if (bound.is(0))
      return bound;
    return sizes.max(sizes.min(sizes.fromEnd(bound, size), size), 0);
  };
  Dim first = clip(start), last = clip(end);
  Dim length = first.is(0) ? last : sizes.max(sizes.sub(last, first), 0);
  return {first, sizes.ceilDiv(length, step)};
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
  Shape shape = inference.sizesOf(op.getSelf());
  shape[dim] = sliceRange(inference.sizes, inference.given(start, op.getStart()),
                          inference.given(end, op.getEnd()), step, shape[dim])
                   .count;
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> SliceOp::getSourceDims() { return std::nullopt; }

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
  Shape shape = inference.sizesOf(op.getSelf());
  std::optional<int64_t> size = shape[dim].number();
  if (size && !ShapedType::isDynamic(index) && (index < -*size || index >= *size))
    return inference.error("index ", index, " is out of range for dim ", dim, " of size ", *size);
  shape.erase(shape.begin() + dim);
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> SelectOp::getSourceDims() {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(getSelf()).getRank()));
  dims.erase(dims.begin() + getDim());
  return dims;
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
  Shape shape = inference.sizesOf(op.getSelf());
  Dim size = shape[dim];
  for (Dim part : inference.given(sizes, op.getSplitSizes())) {
    shape[dim] = part;
    if (failed(inference.result(shape, type.getElementType())))
      return failure();
  }
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return success();
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  return inference.same(total, size, "sum of split_sizes and size of dim");
}

std::optional<SmallVector<int64_t>> SplitWithSizesOp::getSourceDims() { return std::nullopt; }

/// Types of tensors that must agree in all sizes except that of `except` (-1: none).
static FailureOr<Shape> unite(Inference &inference, ValueRange tensors, int64_t except) {
  Shape shape = inference.sizesOf(tensors.front());
  for (Value tensor : tensors.drop_front()) {
    Shape other = inference.sizesOf(tensor);
    if (other.size() != shape.size())
      return inference.error("tensors have ", shape.size(), " and ", other.size(), " dims");
    for (auto [i, size] : llvm::enumerate(other)) {
      if (static_cast<int64_t>(i) == except)
        continue;
      FailureOr<Dim> common = inference.same(shape[i], size, "sizes of tensors");
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
  Dim &total = (*shape)[dim];
  for (Value tensor : ArrayRef(parts).drop_front())
    total = inference.sizes.add(total, inference.sizesOf(tensor)[dim]);
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
  shape->insert(shape->begin() + dim, Dim(op.getTensors().size()));
  return inference.result(*shape, *type);
}

} // namespace shardc::aten
