// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// `parameter` may be null.
static LogicalResult checkNormalizedShape(Inference &inference, RankedTensorType input,
                                          ArrayRef<int64_t> normalized, Value parameter) {
  if (normalized.empty() || static_cast<int64_t>(normalized.size()) > input.getRank())
    return inference.error("normalized_shape has ", normalized.size(), " entries for a tensor of ",
                           input.getRank(), " dims");
  if (failed(verifyCompatibleShape(input.getShape().take_back(normalized.size()), normalized)))
    return inference.error("normalized_shape is not the input's trailing shape");
  if (parameter && failed(verifyCompatibleShape(shapeOf(parameter), normalized)))
    return inference.error("weight and bias must have the shape normalized_shape");
  return success();
}

LogicalResult LayerNormOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getInput());
  for (Value parameter : {op.getWeight(), op.getBias()})
    if (failed(checkNormalizedShape(inference, type, op.getNormalizedShape(), parameter)))
      return failure();
  return inference.result(type.getShape(), type.getElementType());
}

LogicalResult RmsNormOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getInput());
  if (failed(checkNormalizedShape(inference, type, op.getNormalizedShape(), op.getWeight())))
    return failure();
  // Unlike layer_norm, the weight takes part in promotion.
  FailureOr<Type> element = inference.promote(op.getOperands());
  if (failed(element))
    return failure();
  return inference.result(type.getShape(), *element);
}

LogicalResult GroupNormOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getInput());
  if (type.getRank() < 2)
    return inference.error("needs an input of at least two dims: batch and channels");
  int64_t channels = type.getDimSize(1), groups = op.getNumGroups();
  if (groups <= 0 || (!ShapedType::isDynamic(channels) && channels % groups != 0))
    return inference.error("cannot part ", channels, " channels into ", groups, " groups");
  for (Value parameter : {op.getWeight(), op.getBias()})
    if (parameter && failed(verifyCompatibleShape(shapeOf(parameter), {channels})))
      return inference.error("weight and bias must have one element for each channel");
  return inference.result(type.getShape(), type.getElementType());
}

LogicalResult BatchNormOp::infer(Inference &inference, Adaptor op) {
  RankedTensorType type = typeOf(op.getInput());
  if (type.getRank() < 2)
    return inference.error("needs an input of at least two dims: batch and channels");
  for (Value parameter : {op.getWeight(), op.getBias(), op.getRunningMean(), op.getRunningVar()})
    if (parameter && failed(verifyCompatibleShape(shapeOf(parameter), {type.getDimSize(1)})))
      return inference.error(
          "weight, bias, mean and variance must have one element for each channel");
  return inference.result(type.getShape(), type.getElementType());
}

} // namespace shardc::aten
