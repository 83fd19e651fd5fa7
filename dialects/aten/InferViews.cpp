// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// Product of sizes, nothing if one is dynamic (and none is 0) or the product overflows.
static std::optional<int64_t> product(ArrayRef<Dim> shape) {
  if (llvm::any_of(shape, [](Dim size) { return size.is(0); }))
    return 0;
  int64_t result = 1;
  for (Dim size : shape)
    if (!size.number() || llvm::MulOverflow(result, *size.number(), result))
      return std::nullopt;
  return result;
}

/// Dims from `first` up to `end`.
static SmallVector<int64_t> dimsFrom(int64_t first, int64_t end) {
  return llvm::to_vector(llvm::seq<int64_t>(first, end));
}

LogicalResult ViewOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDynamicList(op.getStaticSize(), op.getSize(), "size")))
    return failure();
  Shape shape = inference.given(op.getStaticSize(), op.getSize());
  std::optional<int64_t> before = product(inference.sizesOf(op.getSelf())), after = product(shape);
  if (before && after && *before != *after)
    return inference.error("turns ", *before, " elements into ", *after);
  return inference.result(shape, type.getElementType());
}

/// Where only dims of size 1 come and go.
std::optional<SmallVector<int64_t>> ViewOp::getSourceDims() {
  ArrayRef<int64_t> from = shapeOf(getSelf()), to = shapeOf(getResult());
  SmallVector<int64_t> dims;
  size_t source = 0;
  for (int64_t size : to) {
    while (source < from.size() && from[source] == 1 && size != 1)
      ++source;
    if (size == 1 && (source == from.size() || from[source] != 1)) {
      dims.push_back(-1);
      continue;
    }
    if (source == from.size() || from[source] != size || ShapedType::isDynamic(size))
      return std::nullopt;
    dims.push_back(static_cast<int64_t>(source++));
  }
  for (; source < from.size(); ++source)
    if (from[source] != 1)
      return std::nullopt;
  return dims;
}

LogicalResult ExpandOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDynamicList(op.getStaticSize(), op.getSize(), "size")))
    return failure();
  Shape shape = inference.given(op.getStaticSize(), op.getSize());
  int64_t added = static_cast<int64_t>(shape.size()) - type.getRank();
  if (added < 0)
    return inference.error("size has ", shape.size(), " entries for a tensor of ", type.getRank(),
                           " dims");
  for (auto [i, size] : llvm::enumerate(inference.sizesOf(op.getSelf()))) {
    Dim &target = shape[added + i];
    if (size.is(1) || !size.number())
      continue;
    if (target.number() && *target.number() != *size.number())
      return inference.error("cannot repeat dim ", i, " of size ", *size.number(), " to size ",
                             *target.number());
    target = size;
  }
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> ExpandOp::getSourceDims() {
  int64_t rank = typeOf(getSelf()).getRank(), added = typeOf(getResult()).getRank() - rank;
  SmallVector<int64_t> dims(added, -1);
  llvm::append_range(dims, llvm::seq<int64_t>(0, rank));
  return dims;
}

LogicalResult PermuteOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (static_cast<int64_t>(op.getDims().size()) != type.getRank())
    return inference.error("dims has ", op.getDims().size(), " entries for a tensor of ",
                           type.getRank(), " dims");
  if (failed(inference.checkDims(op.getDims(), type.getRank(), "dims")))
    return failure();
  Shape self = inference.sizesOf(op.getSelf()), shape;
  for (int64_t dim : op.getDims())
    shape.push_back(self[dim]);
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> PermuteOp::getSourceDims() {
  return SmallVector<int64_t>(getDims());
}

LogicalResult TransposeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  int64_t dim0 = op.getDim0(), dim1 = op.getDim1();
  if (failed(inference.checkDim(dim0, type.getRank(), "dim0")) ||
      failed(inference.checkDim(dim1, type.getRank(), "dim1")))
    return failure();
  Shape shape = inference.sizesOf(op.getSelf());
  if (!shape.empty())
    std::swap(shape[dim0], shape[dim1]);
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> TransposeOp::getSourceDims() {
  SmallVector<int64_t> dims = dimsFrom(0, typeOf(getSelf()).getRank());
  if (!dims.empty())
    std::swap(dims[getDim0()], dims[getDim1()]);
  return dims;
}

LogicalResult UnsqueezeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDim(op.getDim(), type.getRank() + 1, "dim")))
    return failure();
  Shape shape = inference.sizesOf(op.getSelf());
  shape.insert(shape.begin() + op.getDim(), Dim(1));
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> UnsqueezeOp::getSourceDims() {
  SmallVector<int64_t> dims = dimsFrom(0, typeOf(getSelf()).getRank());
  dims.insert(dims.begin() + getDim(), -1);
  return dims;
}

LogicalResult SqueezeOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDims(op.getDim(), type.getRank(), "dim")))
    return failure();
  Shape shape;
  for (auto [i, size] : llvm::enumerate(inference.sizesOf(op.getSelf()))) {
    if (!llvm::is_contained(op.getDim(), static_cast<int64_t>(i)))
      shape.push_back(size);
    else if (size.number() && !size.is(1))
      return inference.error("cannot remove dim ", i, " of size ", *size.number());
  }
  return inference.result(shape, type.getElementType());
}

std::optional<SmallVector<int64_t>> SqueezeOp::getSourceDims() {
  return llvm::filter_to_vector(dimsFrom(0, typeOf(getSelf()).getRank()),
                                [&](int64_t dim) { return !llvm::is_contained(getDim(), dim); });
}

static std::optional<SmallVector<int64_t>> allDims(Value tensor) {
  return dimsFrom(0, typeOf(tensor).getRank());
}
std::optional<SmallVector<int64_t>> CloneOp::getSourceDims() { return allDims(getSelf()); }
std::optional<SmallVector<int64_t>> AliasOp::getSourceDims() { return allDims(getSelf()); }

LogicalResult FlipOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  if (failed(inference.checkDims(op.getDims(), type.getRank(), "dims")))
    return failure();
  return inference.result(inference.sizesOf(op.getSelf()), type.getElementType());
}

LogicalResult ConstantPadNdOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getSelf());
  ArrayRef<int64_t> pad = op.getPad();
  if (pad.size() % 2 != 0 || static_cast<int64_t>(pad.size() / 2) > type.getRank())
    return inference.error("pad has ", pad.size(), " entries for a tensor of ", type.getRank(),
                           " dims");
  Shape shape = inference.sizesOf(op.getSelf());
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    Dim &size = shape[shape.size() - 1 - i];
    size = inference.sizes.add(size, pad[2 * i] + pad[2 * i + 1]);
    if (size.number() && *size.number() < 0)
      return inference.error("pad cuts more from dim ", shape.size() - 1 - i, " than there is");
  }
  return inference.result(shape, type.getElementType());
}

} // namespace shardc::aten
