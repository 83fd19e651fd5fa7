// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// `parameter` may be null.
static LogicalResult checkNormalizedShape(Inference &inference, ArrayRef<Dim> input,
                                          ArrayRef<int64_t> entries, Value parameter) {
  if (entries.empty() || entries.size() > input.size())
    return inference.error("normalized_shape has ", entries.size(), " entries for a tensor of ",
                           input.size(), " dims");
  Shape normalized(entries.begin(), entries.end());
  if (!areCompatible(input.take_back(normalized.size()), normalized))
    return inference.error("normalized_shape is not the input's trailing shape");
  if (parameter && !areCompatible(inference.sizesOf(parameter), normalized))
    return inference.error("weight and bias must have the shape normalized_shape");
  return success();
}

LogicalResult LayerNormOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getInput());
  for (Value parameter : {op.getWeight(), op.getBias()})
    if (failed(checkNormalizedShape(inference, shape, op.getNormalizedShape(), parameter)))
      return failure();
  return inference.result(shape, elementTypeOf(op.getInput()));
}

LogicalResult RmsNormOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getInput());
  if (failed(checkNormalizedShape(inference, shape, op.getNormalizedShape(), op.getWeight())))
    return failure();
  // Unlike layer_norm, the weight takes part in promotion.
  FailureOr<Type> element = inference.promote(op.getOperands());
  if (failed(element))
    return failure();
  return inference.result(shape, *element);
}

LogicalResult GroupNormOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getInput());
  if (shape.size() < 2)
    return inference.error("needs an input of at least two dims: batch and channels");
  int64_t channels = shape[1].orDynamic(), groups = op.getNumGroups();
  if (groups <= 0 || (!ShapedType::isDynamic(channels) && channels % groups != 0))
    return inference.error("cannot part ", channels, " channels into ", groups, " groups");
  for (Value parameter : {op.getWeight(), op.getBias()})
    if (parameter && !areCompatible(inference.sizesOf(parameter), {shape[1]}))
      return inference.error("weight and bias must have one element for each channel");
  return inference.result(shape, elementTypeOf(op.getInput()));
}

LogicalResult BatchNormOp::infer(Inference &inference, Adaptor op) {
  Shape shape = inference.sizesOf(op.getInput());
  if (shape.size() < 2)
    return inference.error("needs an input of at least two dims: batch and channels");
  for (Value parameter : {op.getWeight(), op.getBias(), op.getRunningMean(), op.getRunningVar()})
    if (parameter && !areCompatible(inference.sizesOf(parameter), {shape[1]}))
      return inference.error(
          "weight, bias, mean and variance must have one element for each channel");
  return inference.result(shape, elementTypeOf(op.getInput()));
}

} // namespace shardc::aten
