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
  ArrayRef<int64_t> input = shapeOf(op.getInput()), weight = shapeOf(op.getWeight());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  if (input.empty() || weight.empty() || weight.size() > 2)
    return inference.error("needs an input of at least one dim and a weight of one or two dims");
  if (failed(inference.same(input.back(), weight.back(), "last dims of input and weight")))
    return failure();
  Shape shape(input.drop_back());
  if (weight.size() == 2)
    shape.push_back(weight.front());
  if (Value bias = op.getBias()) {
    FailureOr<Shape> sum = inference.broadcast({shape, shapeOf(bias)});
    if (failed(sum))
      return failure();
    if (sum->size() != shape.size())
      return inference.error("bias has more dims than the result");
    shape = *sum;
  }
  return inference.result(shape, *type);
}

std::optional<double> LinearOp::getFlops() {
  return contractionFlops(getResult(), shapeOf(getWeight()).back());
}

LogicalResult MatmulOp::infer(Inference &inference, Adaptor op) {
  ArrayRef<int64_t> lhs = shapeOf(op.getSelf()), rhs = shapeOf(op.getOther());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  if (lhs.empty() || rhs.empty())
    return inference.error("needs operands of at least one dim");
  int64_t rightInner = rhs.size() == 1 ? rhs.front() : rhs[rhs.size() - 2];
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

} // namespace shardc::aten
