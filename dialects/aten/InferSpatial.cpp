// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Rules.h"
#include "dialects/aten/Spatial.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

#include "dialects/aten/WindowInterface.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/aten/Spatial.cpp.inc"

namespace shardc::aten {

/// Larger numbers are no images; their products would overflow.
constexpr int64_t kMaxEntry = int64_t(1) << 31;

/// One entry for each of `count` spatial dims, or (if `mayBeShared`) one for all.
static LogicalResult checkList(Inference &inference, ArrayRef<int64_t> list, StringRef name,
                               size_t count, int64_t least, bool mayBeShared = true) {
  if (list.size() != count && !(mayBeShared && list.size() == 1))
    return inference.error(name, " must be one number for each of ", count, " spatial dims",
                           mayBeShared ? ", or one for all" : "", ", not ", list.size(),
                           " numbers");
  for (int64_t entry : list)
    if (entry < least || entry >= kMaxEntry)
      return inference.error(name, " must not be ", entry);
  return success();
}

/// Of one to three spatial dims.
static LogicalResult checkSpatial(Inference &inference, size_t count) {
  if (count >= 1 && count <= 3)
    return success();
  return inference.error("has one, two or three spatial dims, not ", count);
}

/// `kernel` has an entry for each spatial dim.
static FailureOr<Windows> checkWindows(Inference &inference, ArrayRef<int64_t> kernel,
                                       ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
                                       ArrayRef<int64_t> dilation) {
  size_t count = kernel.size();
  if (failed(checkSpatial(inference, count)) ||
      failed(checkList(inference, kernel, "the kernel size", count, 1)) ||
      failed(checkList(inference, stride, "stride", count, 1)) ||
      failed(checkList(inference, padding, "padding", count, 0)) ||
      failed(checkList(inference, dilation, "dilation", count, 1)))
    return failure();
  return makeWindows(kernel, stride, padding, dilation);
}

/// `leading` and the positions of the windows in the last dims of `image`: none where there is just
/// no room for one, as on a rank that has none of them.
static FailureOr<Shape> slide(Inference &inference, ArrayRef<Window> windows, ArrayRef<Dim> image,
                              ArrayRef<Dim> leading, bool ceil) {
  Shape shape(leading);
  for (auto [window, size] : llvm::zip_equal(windows, image.take_back(windows.size()))) {
    Dim positions = windowPositions(inference.sizes, window, size, ceil);
    if (positions.number() && *positions.number() < 0)
      return inference.error("has a window of extent ", window.extent(), " for a dim of size ",
                             *size.number(), " with ", window.padding, " elements of padding");
    shape.push_back(positions);
  }
  return shape;
}

/// Ops that treat channels one by one take an image without batch too.
static LogicalResult checkImage(Inference &inference, ArrayRef<Dim> shape, size_t spatial,
                                bool needsBatch) {
  if (failed(checkSpatial(inference, spatial)))
    return failure();
  if (shape.size() == spatial + 2 || (shape.size() == spatial + 1 && !needsBatch))
    return success();
  static constexpr llvm::StringLiteral names[] = {"length", "height, width",
                                                  "depth, height, width"};
  return inference.error("needs an image of ", spatial + 2, " dims (batch, channels, ",
                         names[spatial - 1], ")", needsBatch ? "" : " or one less (no batch)",
                         ", not ", shape.size());
}

LogicalResult ConvolutionOp::infer(Inference &inference, Adaptor op) {
  Shape input = inference.sizesOf(op.getInput()), weight = inference.sizesOf(op.getWeight());
  FailureOr<Type> type = inference.sameElementType(op.getOperands());
  if (failed(type))
    return failure();
  if (weight.size() < 3 || weight.size() > 5)
    return inference.error("needs a weight of 3, 4 or 5 dims, not ", weight.size());
  if (failed(checkImage(inference, input, weight.size() - 2, /*needsBatch=*/true)))
    return failure();
  // A kernel size that is not known is fine, and leaves the result's unknown.
  ArrayRef<Dim> kernel = ArrayRef(weight).drop_front(2);
  FailureOr<Windows> windows = checkWindows(
      inference, llvm::map_to_vector(kernel, [](Dim size) { return size.number().value_or(1); }),
      op.getStride(), op.getPadding(), op.getDilation());
  if (failed(windows))
    return failure();
  for (auto [window, size] : llvm::zip_equal(*windows, kernel))
    window.kernel = size.orDynamic();
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

Windows ConvolutionOp::getWindows() {
  return makeWindows(shapeOf(getWeight()).drop_front(2), getStride(), getPadding(), getDilation());
}

std::optional<double> ConvolutionOp::getFlops() {
  std::optional<double> elements = numElements(getResult().getType());
  std::optional<double> perElement = numElements(getWeight().getType());
  int64_t out = shapeOf(getWeight())[0];
  if (!elements || !perElement || ShapedType::isDynamic(out))
    return std::nullopt;
  return out == 0 ? 0.0 : 2 * *elements * *perElement / static_cast<double>(out);
}

LogicalResult WindowsOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf());
  FailureOr<Windows> windows = checkWindows(inference, op.getKernelSize(), op.getStride(),
                                            op.getPadding(), op.getDilation());
  if (failed(windows) || failed(checkImage(inference, self, windows->size(), /*needsBatch=*/true)))
    return failure();
  Shape leading(ArrayRef(self).take_front(2));
  for (const Window &window : *windows)
    leading.push_back(Dim(window.kernel));
  FailureOr<Shape> shape = slide(inference, *windows, self, leading, /*ceil=*/false);
  if (failed(shape))
    return failure();
  return inference.result(*shape, elementTypeOf(op.getSelf()));
}

Windows WindowsOp::getWindows() {
  return makeWindows(getKernelSize(), getStride(), getPadding(), getDilation());
}

LogicalResult FoldOp::infer(Inference &inference, Adaptor op) {
  Shape self = inference.sizesOf(op.getSelf());
  if (failed(inference.checkDynamicList(op.getStaticSize(), op.getSize(), "size")) ||
      failed(checkSpatial(inference, op.getStaticSize().size())))
    return failure();
  size_t count = op.getStaticSize().size();
  if (self.size() != 2 + 2 * count)
    return inference.error("needs ", 2 + 2 * count,
                           " dims (batch, channels, kernel, positions), not ", self.size());
  ArrayRef<Dim> kernel = ArrayRef(self).slice(2, count);
  FailureOr<Windows> windows = checkWindows(
      inference, llvm::map_to_vector(kernel, [](Dim size) { return size.number().value_or(1); }),
      op.getStride(), op.getPadding(), op.getDilation());
  if (failed(windows))
    return failure();
  Shape shape(ArrayRef(self).take_front(2));
  llvm::append_range(shape, inference.given(op.getStaticSize(), op.getSize()));
  // A pool may have one more, which reaches beyond the padding.
  for (size_t dim = 0; dim < count; ++dim) {
    Dim most = kernel[dim].number()
                   ? windowPositions(inference.sizes, (*windows)[dim], shape[2 + dim])
                   : Dim();
    std::optional<int64_t> positions = self[2 + count + dim].number();
    if (most.number() && positions && *positions > std::max<int64_t>(*most.number(), 0) + 1)
      return inference.error("has ", *positions, " positions in dim ", 2 + dim,
                             " of the image, where the window has ", *most.number());
  }
  return inference.result(shape, elementTypeOf(op.getSelf()));
}

Windows FoldOp::getWindows() {
  return makeWindows(shapeOf(getSelf()).slice(2, getStaticSize().size()), getStride(), getPadding(),
                     getDilation());
}

/// The shape of a pool's result.
static FailureOr<Shape> inferPool(Inference &inference, Value self, ArrayRef<int64_t> kernel,
                                  ArrayRef<int64_t> stride, ArrayRef<int64_t> padding,
                                  ArrayRef<int64_t> dilation, bool ceil) {
  Shape image = inference.sizesOf(self);
  if (stride.empty())
    stride = kernel;
  FailureOr<Windows> windows = checkWindows(inference, kernel, stride, padding, dilation);
  if (failed(windows) ||
      failed(checkImage(inference, image, windows->size(), /*needsBatch=*/false)))
    return failure();
  // Every position covers an element of the image.
  for (const Window &window : *windows)
    if (window.padding > window.extent() / 2)
      return inference.error("has a padding of ", window.padding,
                             ", more than half of the window's extent ", window.extent());
  FailureOr<Shape> shape =
      slide(inference, *windows, image, ArrayRef(image).drop_back(windows->size()), ceil);
  if (failed(shape))
    return failure();
  for (auto [size, positions] : llvm::zip_equal(ArrayRef(image).take_back(windows->size()),
                                                ArrayRef(*shape).take_back(windows->size())))
    if (size.is(0) && !positions.is(0))
      return inference.error("has no elements to choose from");
  return shape;
}

template <typename Adaptor>
static FailureOr<Shape> inferMaxPool(Inference &inference, Adaptor &op) {
  return inferPool(inference, op.getSelf(), op.getKernelSize(), op.getStride(), op.getPadding(),
                   op.getDilation(), op.getCeilMode());
}

LogicalResult MaxPoolOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Shape> shape = inferMaxPool(inference, op);
  return failed(shape) ? failure() : inference.result(*shape, elementTypeOf(op.getSelf()));
}

LogicalResult MaxPoolPositionsOp::infer(Inference &inference, Adaptor op) {
  FailureOr<Shape> shape = inferMaxPool(inference, op);
  return failed(shape) ? failure()
                       : inference.result(*shape, IntegerType::get(inference.getContext(), 64));
}

template <typename Op> static Windows windowsOfPool(Op op, ArrayRef<int64_t> dilation) {
  ArrayRef<int64_t> kernel = op.getKernelSize(), stride = op.getStride();
  return makeWindows(kernel, stride.empty() ? kernel : stride, op.getPadding(), dilation);
}

/// Sums of shorter floats would be rounded once more.
static std::optional<Reduction> exactSum(Value of) {
  Type element = elementTypeOf(of);
  return Emitter::accumulator(element) == element ? std::optional(Reduction::Sum) : std::nullopt;
}

std::optional<Reduction> ConvolutionOp::getPartReduction() { return exactSum(getInput()); }
std::optional<Reduction> MaxPoolOp::getPartReduction() { return Reduction::Max; }
std::optional<Reduction> AvgPoolOp::getPartReduction() { return exactSum(getSelf()); }

Windows MaxPoolOp::getWindows() { return windowsOfPool(*this, getDilation()); }
Windows MaxPoolPositionsOp::getWindows() { return windowsOfPool(*this, getDilation()); }
Windows AvgPoolOp::getWindows() { return windowsOfPool(*this, {1}); }

LogicalResult AvgPoolOp::infer(Inference &inference, Adaptor op) {
  if (op.getDivisorOverride() == 0)
    return inference.error("must not divide by 0");
  FailureOr<Shape> shape = inferPool(inference, op.getSelf(), op.getKernelSize(), op.getStride(),
                                     op.getPadding(), {1}, op.getCeilMode());
  return failed(shape) ? failure() : inference.result(*shape, elementTypeOf(op.getSelf()));
}

static LogicalResult inferAdaptivePool(Inference &inference, Value self, ArrayRef<int64_t> parts,
                                       Type type) {
  Shape image = inference.sizesOf(self);
  if (failed(checkImage(inference, image, parts.size(), /*needsBatch=*/false)) ||
      failed(checkList(inference, parts, "output_size", parts.size(), 0, /*mayBeShared=*/false)))
    return failure();
  for (Dim size : ArrayRef(image).take_back(parts.size()))
    if (size.is(0))
      return inference.error("has no elements to average or choose from");
  Shape shape(ArrayRef(image).drop_back(parts.size()));
  for (int64_t part : parts)
    shape.push_back(Dim(part));
  return inference.result(shape, type);
}

LogicalResult AdaptiveAvgPoolOp::infer(Inference &inference, Adaptor op) {
  return inferAdaptivePool(inference, op.getSelf(), op.getOutputSize(),
                           elementTypeOf(op.getSelf()));
}

LogicalResult AdaptiveMaxPoolOp::infer(Inference &inference, Adaptor op) {
  return inferAdaptivePool(inference, op.getSelf(), op.getOutputSize(),
                           elementTypeOf(op.getSelf()));
}

LogicalResult AdaptiveMaxPoolPositionsOp::infer(Inference &inference, Adaptor op) {
  return inferAdaptivePool(inference, op.getSelf(), op.getOutputSize(),
                           IntegerType::get(inference.getContext(), 64));
}

} // namespace shardc::aten
