// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Fourier.h"
#include "dialects/aten/Rules.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include <cmath>

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/aten/Fourier.cpp.inc"

namespace shardc::aten {

static LogicalResult checkPairs(Inference &inference, ArrayRef<Dim> shape) {
  if (!shape.empty() && (!shape.back().number() || shape.back().is(2)))
    return success();
  return inference.error("needs a last dim of 2, for the real part and the imaginary one");
}

/// `rank` dims, of which one is transformed: it has elements.
static LogicalResult checkTransform(Inference &inference, ArrayRef<Dim> shape, int64_t rank,
                                    int64_t dim, int64_t normalization) {
  if (rank < 1 || dim < 0 || dim >= rank)
    return inference.error("has no dim ", dim, " to transform");
  if (shape[dim].is(0))
    return inference.error("has no elements to transform");
  if (normalization < 0 || normalization > 2)
    return inference.error("normalization must be 0, 1 or 2, not ", normalization);
  return success();
}

/// Elements 0 to n / 2.
static Dim halfOf(Inference &inference, Dim n) {
  return inference.sizes.ceilDiv(inference.sizes.add(n, Dim(1)), 2);
}

LogicalResult FftC2cOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getSelf());
  if (failed(checkPairs(inference, shape)) ||
      failed(checkTransform(inference, shape, static_cast<int64_t>(shape.size()) - 1, op.getDim(),
                            op.getNormalization())))
    return failure();
  return inference.result(shape, elementTypeOf(op.getSelf()));
}

LogicalResult FftR2cOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getSelf());
  if (failed(checkTransform(inference, shape, static_cast<int64_t>(shape.size()), op.getDim(),
                            op.getNormalization())))
    return failure();
  if (op.getOnesided())
    shape[op.getDim()] = halfOf(inference, shape[op.getDim()]);
  shape.push_back(Dim(2));
  return inference.result(shape, elementTypeOf(op.getSelf()));
}

LogicalResult FftC2rOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getSelf());
  if (failed(checkPairs(inference, shape)) ||
      failed(checkTransform(inference, shape, static_cast<int64_t>(shape.size()) - 1, op.getDim(),
                            op.getNormalization())) ||
      failed(inference.checkDynamicList(op.getStaticLastDimSize(), op.getLastDimSize(),
                                        "last_dim_size")))
    return failure();
  if (op.getStaticLastDimSize().size() != 1)
    return inference.error("last_dim_size must be one number");
  Dim size = inference.given(op.getStaticLastDimSize(), op.getLastDimSize()).front();
  if (size.is(0))
    return inference.error("cannot have a result of no elements");
  if (failed(inference.same(halfOf(inference, size), shape[op.getDim()],
                            "elements of half of the transform and of the operand")))
    return failure();
  shape[op.getDim()] = size;
  shape.pop_back();
  return inference.result(shape, elementTypeOf(op.getSelf()));
}

ShardingRule fourierRule(Operation *op, int64_t dim) {
  RuleBuilder builder = ruleBuilder(op);
  ArrayRef<int64_t> operand = shapeOf(op->getOperand(0)), result = shapeOf(op->getResult(0));
  auto rank = static_cast<int64_t>(std::min(operand.size(), result.size()));
  // Where both are pairs, the last dim is that of the pairs.
  rank -= operand.size() == result.size() ? 1 : 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim || operand[i] == 1)
      continue;
    DimFactors factors{builder.factor(operand[i])};
    builder.operandDim(0, i, factors).resultDim(0, i, factors);
  }
  return builder.linear(0).build();
}

double fourierScale(int64_t normalization, int64_t n) {
  auto size = static_cast<double>(n);
  return normalization == 0 ? 1.0 : normalization == 1 ? 1.0 / std::sqrt(size) : 1.0 / size;
}

/// Those of the classic algorithms.
static std::optional<double> flopsOf(Value self, Value result, int64_t dim) {
  std::optional<double> before = numElements(self.getType()), after = numElements(result.getType());
  int64_t size = std::max(shapeOf(self)[dim], shapeOf(result)[dim]);
  if (!before || !after || ShapedType::isDynamic(size) || size < 1)
    return std::nullopt;
  return 2.5 * std::max(*before, *after) * std::max(1.0, std::log2(static_cast<double>(size)));
}

std::optional<double> FftC2cOp::getFlops() { return flopsOf(getSelf(), getResult(), getDim()); }
std::optional<double> FftR2cOp::getFlops() { return flopsOf(getSelf(), getResult(), getDim()); }
std::optional<double> FftC2rOp::getFlops() { return flopsOf(getSelf(), getResult(), getDim()); }

} // namespace shardc::aten
