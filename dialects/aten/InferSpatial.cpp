// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Aten.h"

using namespace mlir;

namespace shardc::aten {

/// Larger numbers are no images; their products would overflow.
constexpr int64_t kMaxEntry = int64_t(1) << 31;

static LogicalResult checkList(Inference &inference, ArrayRef<int64_t> list, StringRef name,
                               int64_t least) {
  if (list.size() != 1 && list.size() != 2)
    return inference.error(name, " must be one number or two, for height and width");
  for (int64_t entry : list)
    if (entry < least || entry >= kMaxEntry)
      return inference.error(name, " must not be ", entry);
  return success();
}

static FailureOr<std::array<Window, 2>> checkWindows(Inference &inference, ArrayRef<int64_t> kernel,
                                                     ArrayRef<int64_t> stride,
                                                     ArrayRef<int64_t> padding,
                                                     ArrayRef<int64_t> dilation) {
  if (failed(checkList(inference, kernel, "the kernel size", 1)) ||
      failed(checkList(inference, stride, "stride", 1)) ||
      failed(checkList(inference, padding, "padding", 0)) ||
      failed(checkList(inference, dilation, "dilation", 1)))
    return failure();
  return makeWindows(kernel, stride, padding, dilation);
}

/// `leading` and the positions of the windows in the last two dims of `image`.
static FailureOr<Shape> slide(Inference &inference, ArrayRef<Window> windows, ArrayRef<Dim> image,
                              ArrayRef<Dim> leading, bool ceil) {
  Shape shape(leading);
  for (unsigned dim = 0; dim < 2; ++dim) {
    Dim size = image[image.size() - 2 + dim];
    Dim positions = windowPositions(inference.sizes, windows[dim], size, ceil);
    if (positions.number() && *positions.number() < 1)
      return inference.error("has a window of extent ", windows[dim].extent(),
                             " for a dim of size ", *size.number(), " with ", windows[dim].padding,
                             " elements of padding");
    shape.push_back(positions);
  }
  return shape;
}

/// Ops that treat channels one by one take an image without batch too.
static LogicalResult checkImage(Inference &inference, ArrayRef<Dim> shape, bool needsBatch) {
  if (shape.size() == 4 || (shape.size() == 3 && !needsBatch))
    return success();
  return inference.error("needs an image of 4 dims (batch, channels, height, width)",
                         needsBatch ? "" : " or 3 (no batch)", ", not ", shape.size());
}

LogicalResult Conv2dOp::infer(Inference &inference, Adaptor op) {
  Shape input = inference.sizesOf(op.getInput()), weight = inference.sizesOf(op.getWeight());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type) || failed(checkImage(inference, input, /*needsBatch=*/true)))
    return failure();
  if (weight.size() != 4)
    return inference.error("needs a weight of 4 dims, not ", weight.size());
  // A kernel size that is not known is fine, and leaves the result's unknown.
  SmallVector<int64_t> kernel{weight[2].number().value_or(1), weight[3].number().value_or(1)};
  FailureOr<std::array<Window, 2>> windows =
      checkWindows(inference, kernel, op.getStride(), op.getPadding(), op.getDilation());
  if (failed(windows))
    return failure();
  for (unsigned dim = 0; dim < 2; ++dim)
    (*windows)[dim].kernel = weight[2 + dim].orDynamic();
  int64_t groups = op.getGroups();
  if (groups < 1 || groups >= kMaxEntry)
    return inference.error("groups must not be ", groups);
  for (Dim size : {input[1], weight[0]})
    if (size.number() && *size.number() % groups != 0)
      return inference.error("cannot part ", *size.number(), " channels into ", groups, " groups");
  if (input[1].number() &&
      failed(inference.same(*input[1].number() / groups, weight[1],
                            "channels of a group of the input and of the weight")))
    return failure();
  if (Value bias = op.getBias(); bias && !areCompatible(inference.sizesOf(bias), {weight[0]}))
    return inference.error("bias must have one element for each output channel");
  FailureOr<Shape> shape = slide(inference, *windows, input, {input[0], weight[0]}, /*ceil=*/false);
  if (failed(shape))
    return failure();
  return inference.result(*shape, *type);
}

std::array<Window, 2> Conv2dOp::getWindows() {
  return makeWindows(shapeOf(getWeight()).take_back(2), getStride(), getPadding(), getDilation());
}

std::optional<double> Conv2dOp::getFlops() {
  std::optional<double> elements = numElements(getResult().getType());
  std::optional<double> perElement = numElements(getWeight().getType());
  int64_t out = shapeOf(getWeight())[0];
  if (!elements || !perElement || ShapedType::isDynamic(out))
    return std::nullopt;
  return out == 0 ? 0.0 : 2 * *elements * *perElement / static_cast<double>(out);
}

LogicalResult WindowsOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf());
  FailureOr<std::array<Window, 2>> windows = checkWindows(
      inference, op.getKernelSize(), op.getStride(), op.getPadding(), op.getDilation());
  if (failed(windows) || failed(checkImage(inference, self, /*needsBatch=*/true)))
    return failure();
  FailureOr<Shape> shape =
      slide(inference, *windows, self,
            {self[0], self[1], Dim((*windows)[0].kernel), Dim((*windows)[1].kernel)},
            /*ceil=*/false);
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(op.getSelf()));
}

std::array<Window, 2> WindowsOp::getWindows() {
  return makeWindows(getKernelSize(), getStride(), getPadding(), getDilation());
}

static LogicalResult inferPool(Inference &inference, Value self, ArrayRef<int64_t> kernel,
                               ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
                               ArrayRef<int64_t> dilation, bool ceil) {
  Shape image = inference.sizesOf(self);
  if (stride.empty())
    stride = kernel;
  FailureOr<std::array<Window, 2>> windows =
      checkWindows(inference, kernel, stride, padding, dilation);
  if (failed(windows) || failed(checkImage(inference, image, /*needsBatch=*/false)))
    return failure();
  // Every position covers an element of the image.
  for (const Window &window : *windows)
    if (window.padding > window.extent() / 2)
      return inference.error("has a padding of ", window.padding,
                             ", more than half of the window's extent ", window.extent());
  for (Dim size : ArrayRef(image).take_back(2))
    if (size.is(0))
      return inference.error("has no elements to choose from");
  FailureOr<Shape> shape = slide(inference, *windows, image, ArrayRef(image).drop_back(2), ceil);
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(self));
}

LogicalResult MaxPool2dOp::infer(Inference &inference, Adaptor op) {
  return inferPool(inference, op.getSelf(), op.getKernelSize(), op.getStride(), op.getPadding(),
                   op.getDilation(), op.getCeilMode());
}

std::array<Window, 2> MaxPool2dOp::getWindows() {
  return makeWindows(getKernelSize(), getStride().empty() ? getKernelSize() : getStride(),
                     getPadding(), getDilation());
}

LogicalResult AvgPool2dOp::infer(Inference &inference, Adaptor op) {
  if (op.getDivisorOverride() == 0)
    return inference.error("must not divide by 0");
  return inferPool(inference, op.getSelf(), op.getKernelSize(), op.getStride(), op.getPadding(),
                   {1}, op.getCeilMode());
}

std::array<Window, 2> AvgPool2dOp::getWindows() {
  return makeWindows(getKernelSize(), getStride().empty() ? getKernelSize() : getStride(),
                     getPadding(), {1});
}

LogicalResult AdaptiveAvgPool2dOp::infer(Inference &inference, Adaptor op) {
  Shape image = inference.sizesOf(op.getSelf());
  if (failed(checkImage(inference, image, /*needsBatch=*/false)) ||
      failed(checkList(inference, op.getOutputSize(), "output_size", 0)))
    return failure();
  for (Dim size : ArrayRef(image).take_back(2))
    if (size.is(0))
      return inference.error("has no elements to average");
  Shape shape(ArrayRef(image).drop_back(2));
  shape.append({Dim(op.getOutputSize().front()), Dim(op.getOutputSize().back())});
  return inference.result(shape, elementTypeOf(op.getSelf()));
}

} // namespace shardc::aten
