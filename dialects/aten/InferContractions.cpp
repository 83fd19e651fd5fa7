// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// Two operations for each element of the result and of the contracted dim.
static std::optional<double> contractionFlops(Value result, int64_t contracted) {
  std::optional<double> elements = numElements(result.getType());
  if (!elements || ShapedType::isDynamic(contracted))
    return std::nullopt;
  return 2 * *elements * static_cast<double>(contracted);
}

LogicalResult LinearOp::infer(Inference &inference, Adaptor op) {
  Shape input = inference.sizesOf(op.getInput()), weight = inference.sizesOf(op.getWeight());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  if (input.empty() || weight.empty() || weight.size() > 2)
    return inference.error("needs an input of at least one dim and a weight of one or two dims");
  if (failed(inference.same(input.back(), weight.back(), "last dims of input and weight")))
    return failure();
  Shape shape(ArrayRef(input).drop_back());
  if (weight.size() == 2)
    shape.push_back(weight.front());
  if (Value bias = op.getBias()) {
    FailureOr<Shape> sum = inference.broadcast({ArrayRef(shape), inference.sizesOf(bias)});
    if (failed(sum))
      return failure();
    if (!areCompatible(*sum, shape))
      return inference.error("bias does not broadcast to the product's shape");
  }
  return inference.result(shape, *type);
}

std::optional<double> LinearOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getWeight()).back());
}

LogicalResult MatmulOp::infer(Inference &inference, Adaptor op) {
  Shape left = inference.sizesOf(op.getSelf()), right = inference.sizesOf(op.getOther());
  ArrayRef<Dim> lhs = left, rhs = right;
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  if (lhs.empty() || rhs.empty())
    return inference.error("needs operands of at least one dim");
  Dim rightInner = rhs.size() == 1 ? rhs.front() : rhs[rhs.size() - 2];
  if (failed(inference.same(lhs.back(), rightInner, "contracted dims")))
    return failure();
  FailureOr<Shape> shape = inference.broadcast({lhs.drop_back(std::min<size_t>(2, lhs.size())),
                                                rhs.drop_back(std::min<size_t>(2, rhs.size()))});
  if (failed(shape))
    return failure();
  if (lhs.size() > 1)
    shape->push_back(lhs[lhs.size() - 2]);
  if (rhs.size() > 1)
    shape->push_back(rhs.back());
  return inference.result(*shape, *type);
}

std::optional<double> MatmulOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getSelf()).back());
}

/// [b, m, k] by [b, k, n], or the same without b.
static FailureOr<Shape> inferProduct(Inference &inference, Value lhs, Value rhs, size_t rank) {
  Shape left = inference.sizesOf(lhs), right = inference.sizesOf(rhs);
  if (left.size() != rank || right.size() != rank)
    return inference.error("multiplies tensors of ", rank, " dims, not ", left.size(), " and ",
                           right.size());
  if (failed(inference.same(left.back(), right[rank - 2], "contracted dims")))
    return failure();
  Shape shape;
  if (rank == 3) {
    FailureOr<Dim> batch = inference.same(left.front(), right.front(), "batch sizes");
    if (failed(batch))
      return failure();
    shape.push_back(*batch);
  }
  shape.append({left[rank - 2], right.back()});
  return shape;
}

static LogicalResult inferProductResult(Inference &inference, Value lhs, Value rhs, size_t rank) {
  FailureOr<Shape> shape = inferProduct(inference, lhs, rhs, rank);
  FailureOr<Type> type = inference.sameElementType({lhs, rhs});
  if (failed(shape) || failed(type))
    return failure();
  return inference.result(*shape, *type);
}

static LogicalResult inferSumWithProduct(Inference &inference, Value self, Value lhs, Value rhs,
                                         size_t rank) {
  FailureOr<Shape> shape = inferProduct(inference, lhs, rhs, rank);
  FailureOr<Type> type = inference.sameElementType({self, lhs, rhs});
  if (failed(shape) || failed(type))
    return failure();
  FailureOr<Shape> sum = inference.broadcast({ArrayRef(*shape), inference.sizesOf(self)});
  if (failed(sum))
    return failure();
  if (!areCompatible(*sum, *shape))
    return inference.error("self does not broadcast to the product's shape");
  return inference.result(*shape, *type);
}

LogicalResult MmOp::infer(Inference &inference, Adaptor op) {
  return inferProductResult(inference, op.getSelf(), op.getMat2(), 2);
}
LogicalResult BmmOp::infer(Inference &inference, Adaptor op) {
  return inferProductResult(inference, op.getSelf(), op.getMat2(), 3);
}
LogicalResult AddmmOp::infer(Inference &inference, Adaptor op) {
  return inferSumWithProduct(inference, op.getSelf(), op.getMat1(), op.getMat2(), 2);
}
LogicalResult BaddbmmOp::infer(Inference &inference, Adaptor op) {
  return inferSumWithProduct(inference, op.getSelf(), op.getBatch1(), op.getBatch2(), 3);
}

LogicalResult TensordotOp::infer(Inference &inference, Adaptor op) {
  Shape left = inference.sizesOf(op.getSelf()), right = inference.sizesOf(op.getOther());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  ArrayRef<int64_t> ofSelf = op.getDimsSelf(), ofOther = op.getDimsOther();
  auto isDimOf = [](ArrayRef<Dim> shape) {
    return [rank = static_cast<int64_t>(shape.size())](int64_t dim) { return dim < rank; };
  };
  if (ofSelf.size() != ofOther.size() || !llvm::all_of(ofSelf, isDimOf(left)) ||
      !llvm::all_of(ofOther, isDimOf(right)) ||
      failed(inference.checkDims(ofSelf, left.size(), "dims_self")) ||
      failed(inference.checkDims(ofOther, right.size(), "dims_other")))
    return inference.error("sums over dims [", ofSelf, "] of a tensor of ", left.size(),
                           " dims and [", ofOther, "] of one of ", right.size());
  for (auto [l, r] : llvm::zip_equal(ofSelf, ofOther))
    if (failed(inference.same(left[l], right[r], "summed dims")))
      return failure();
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(left))
    if (!llvm::is_contained(ofSelf, static_cast<int64_t>(dim)))
      shape.push_back(size);
  for (auto [dim, size] : llvm::enumerate(right))
    if (!llvm::is_contained(ofOther, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return inference.result(shape, *type);
}

SmallVector<int64_t> TensordotOp::getFreeDims(unsigned operand) {
  ArrayRef<int64_t> summed = operand == 0 ? getDimsSelf() : getDimsOther();
  SmallVector<int64_t> free;
  for (int64_t dim = 0, rank = typeOf(getOperand(operand)).getRank(); dim < rank; ++dim)
    if (!llvm::is_contained(summed, dim))
      free.push_back(dim);
  return free;
}

std::optional<double> TensordotOp::getFlops() {
  int64_t summed = 1;
  for (int64_t dim : getDimsSelf()) {
    int64_t size = shapeOf(getSelf())[dim];
    summed = ShapedType::isDynamic(size) || ShapedType::isDynamic(summed) ? ShapedType::kDynamic
                                                                          : summed * size;
  }
  return contractionFlops(getResult(), summed);
}

std::optional<double> MmOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getSelf()).back());
}
std::optional<double> BmmOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getSelf()).back());
}
std::optional<double> AddmmOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getMat1()).back());
}
std::optional<double> BaddbmmOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getBatch1()).back());
}

} // namespace shardc::aten
