// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads of convolutions and of windows, of one to three spatial dims.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Spatial.h"

#include "dialects/aten/BuiltSizes.h"
#include "dialects/aten/ConvolutionAsProduct.h"
#include "dialects/aten/Emitter.h"
#include "dialects/aten/Window.h"

using namespace mlir;

namespace shardc::torch_export {

namespace {

/// Dims in front of the spatial ones: batch and channels.
constexpr int64_t kOuter = 2;

/// The arguments of a convolution. An input without batch gets one of a single image.
struct Convolution {
  Call &call;
  Emitter emit;
  Value input, weight;
  SmallVector<int64_t> stride, padding, dilation, padAfter, outputPadding;
  int64_t groups = 1, spatial = 0;
  bool transposed = false, batched = true;

  explicit Convolution(Call &call) : call(call), emit(call.builder, call.loc) {}

  static FailureOr<Convolution> of(Call &call) {
    Convolution found(call);
    FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight");
    FailureOr<std::optional<SmallVector<int64_t>>> stride = call.integers("stride"),
                                                   dilation = call.integers("dilation");
    FailureOr<std::optional<int64_t>> groups = call.integer("groups");
    if (failed(input) || failed(weight) || failed(stride) || failed(dilation) || failed(groups))
      return failure();
    found.input = *input;
    found.weight = *weight;
    found.transposed =
        StringRef(call.schema.overload).split('.').first.starts_with("conv_transpose");
    if (call.schema.find("transposed")) {
      FailureOr<bool> transposed = call.boolean("transposed");
      if (failed(transposed))
        return failure();
      found.transposed = *transposed;
    }
    int64_t rank = aten::typeOf(*weight).getRank(), of = aten::typeOf(*input).getRank();
    if (rank < 3 || rank > 5 || (of != rank && of != rank - 1))
      return call.error()
             << "a convolution has a weight of 3, 4 or 5 dims and an input of as many, "
                "or of one less, not of "
             << rank << " and " << of << " dims";
    found.spatial = rank - kOuter;
    found.batched = of == rank;
    if (!found.batched)
      found.input = found.emit.unsqueeze(*input, 0);
    found.stride = spread(**stride, found.spatial);
    found.dilation = spread(**dilation, found.spatial);
    found.groups = **groups;
    if (failed(found.readPadding()))
      return failure();
    return found;
  }

  LogicalResult readPadding() {
    padAfter.assign(spatial, 0);
    outputPadding.assign(spatial, 0);
    if (call.schema.find("output_padding")) {
      FailureOr<std::optional<SmallVector<int64_t>>> numbers = call.integers("output_padding");
      if (failed(numbers))
        return failure();
      if (transposed)
        outputPadding = spread(**numbers, spatial);
    }
    auto *word = std::get_if<std::string_view>(call.find("padding"));
    if (!word) {
      FailureOr<std::optional<SmallVector<int64_t>>> numbers = call.integers("padding");
      if (failed(numbers))
        return failure();
      padding = spread(**numbers, spatial);
      return success();
    }
    padding.assign(spatial, 0);
    if (*word == "valid")
      return success();
    if (*word != "same")
      return call.error() << "there is no padding '" << StringRef(*word) << "'";
    for (int64_t dim = 0; dim < spatial; ++dim) {
      int64_t size = aten::shapeOf(weight)[kOuter + dim];
      if (ShapedType::isDynamic(size))
        return call.error() << "padding 'same' needs a kernel of known size";
      // What does not divide by two stands behind the image.
      int64_t total = dilation[dim] * (size - 1);
      padding[dim] = total / 2;
      padAfter[dim] = total % 2;
    }
    return success();
  }

  SmallVector<NamedAttribute> attributes() {
    return {call.integersAttr("stride", stride), call.integersAttr("padding", padding),
            call.integersAttr("dilation", dilation), call.integerAttr("groups", groups)};
  }

  /// With zeros behind each spatial dim of an image.
  FailureOr<Value> padded(Value image, ArrayRef<int64_t> after) {
    if (llvm::all_of(after, [](int64_t width) { return width == 0; }))
      return image;
    SmallVector<int64_t> pad;
    for (int64_t width : llvm::reverse(after))
      pad.append({0, width});
    return call.buildOne("aten.constant_pad_nd", {{"self", {image}}},
                         {call.integersAttr("pad", pad)});
  }

  /// The op that is not transposed, of this image.
  FailureOr<Operation *> plain(Value image, Value bias) {
    SmallVector<aten::NamedOperand> operands = {{"input", {image}}, {"weight", {weight}}};
    if (bias)
      operands.push_back({"bias", {bias}});
    return call.build("aten.convolution", operands, attributes());
  }

  FailureOr<Value> forward(Value bias) {
    FailureOr<Value> image = padded(input, padAfter);
    if (failed(image))
      return failure();
    FailureOr<Operation *> op = plain(*image, bias);
    if (failed(op))
      return failure();
    return (*op)->getResult(0);
  }

  /// How many positions more a convolution of the result would have than the input has elements.
  SmallVector<int64_t> excess() const {
    SmallVector<int64_t> more;
    for (auto [extra, step] : llvm::zip_equal(outputPadding, stride))
      more.push_back(extra / step);
    return more;
  }

  /// What the convolution of an image of the result's size with the same weight is derived by.
  FailureOr<Value> transposedForward(Value bias) {
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
    if (failed(sizes))
      return failure();
    if (!batched)
      sizes->insert(sizes->begin(), call.builder.getIndexAttr(1));
    Value image = emit.zeros(*sizes, aten::elementTypeOf(input));
    FailureOr<Operation *> op = plain(image, Value());
    if (failed(op))
      return failure();
    FailureOr<SmallVector<Value>> cotangents = buildAdjoint(call, *op, input, {true, false});
    if (failed(cotangents))
      return failure();
    Value result = cotangents->front();
    if (bias) {
      SmallVector<OpFoldResult> ofChannel(spatial + 1, call.builder.getIndexAttr(1));
      ofChannel.front() = sizesOf(call.builder, call.loc, bias).front();
      result = emit.add(result, emit.view(bias, ofChannel));
    }
    return result;
  }

  /// The cotangents of input and weight, where they are asked for.
  FailureOr<SmallVector<Value>> backward(Value grad, const OutputMask &mask) {
    FailureOr<Value> image = padded(input, padAfter);
    if (failed(image))
      return failure();
    FailureOr<Operation *> op = plain(*image, Value());
    if (failed(op))
      return failure();
    return cotangentsOf(call, *op, grad, {0, 1, kNoOperand}, mask);
  }

  FailureOr<SmallVector<Value>> transposedBackward(Value grad, const OutputMask &mask) {
    FailureOr<Operation *> op = plain(grad, Value());
    if (failed(op))
      return failure();
    SmallVector<Value> results(3);
    if (mask.wants(call, 1)) {
      FailureOr<Value> cotangent = padded(input, excess());
      if (failed(cotangent))
        return failure();
      // The op itself is read below; another one is derived.
      Operation *other = call.builder.clone(**op);
      FailureOr<SmallVector<Value>> found = buildAdjoint(call, other, *cotangent, {false, true});
      if (failed(found))
        return failure();
      results[1] = (*found)[1];
    }
    results[0] = (*op)->getResult(0);
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, input);
    for (auto [dim, more] : llvm::enumerate(excess()))
      if (more > 0)
        results[0] = emit.slice(results[0], kOuter + static_cast<int64_t>(dim),
                                call.builder.getIndexAttr(0), sizes[kOuter + dim]);
    return results;
  }
};

} // namespace

FailureOr<Results> buildConvolution(Call &call) {
  FailureOr<Value> bias = call.tensor("bias");
  FailureOr<Convolution> convolution = Convolution::of(call);
  if (failed(bias) || failed(convolution))
    return failure();
  FailureOr<Value> result =
      convolution->transposed ? convolution->transposedForward(*bias) : convolution->forward(*bias);
  if (failed(result) || convolution->batched)
    return one(result);
  return one(call.buildOne("aten.squeeze", {{"self", {*result}}}, {call.integersAttr("dim", 0)}));
}

// Of input, weight and bias; the forward is built without the bias, which every position gets.
FailureOr<Results> buildConvolutionBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<OutputMask> mask = OutputMask::of(call, 3);
  if (failed(grad) || failed(mask))
    return failure();
  FailureOr<Convolution> convolution = Convolution::of(call);
  if (failed(convolution))
    return failure();
  if (!convolution->batched)
    return call.error() << "needs an input with a batch";
  FailureOr<SmallVector<Value>> cotangents = convolution->transposed
                                                 ? convolution->transposedBackward(*grad, *mask)
                                                 : convolution->backward(*grad, *mask);
  if (failed(cotangents))
    return failure();
  if (mask->wants(call, 2)) {
    SmallVector<int64_t> others = {0};
    for (int64_t dim = 0; dim < convolution->spatial; ++dim)
      others.push_back(kOuter + dim);
    (*cotangents)[2] = convolution->emit.sum(*grad, others, /*keepdim=*/false);
  }
  return mask->results(*cotangents);
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

namespace {

/// The windows of im2col and col2im.
FailureOr<aten::Windows> windowsOf(Call &call) {
  SmallVector<SmallVector<int64_t>, 4> lists;
  for (StringRef name : {"kernel_size", "stride", "padding", "dilation"}) {
    FailureOr<std::optional<SmallVector<int64_t>>> list = call.integers(name);
    if (failed(list))
      return failure();
    lists.push_back(spread(**list, 2));
  }
  return aten::makeWindows(lists[0], lists[1], lists[2], lists[3]);
}

} // namespace

// [N, C, kernel, positions] as [N, C * kernel elements, all positions]. N may be missing.
FailureOr<Results> buildIm2col(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<aten::Windows> windows = windowsOf(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(windows) || failed(sizes))
    return failure();
  Value image = *self;
  if (aten::typeOf(image).getRank() == 3)
    image = Emitter(call.builder, call.loc).unsqueeze(image, 0);
  Value columns = aten::buildWindows(call.builder, call.loc, image, *windows);
  return one(buildView(call.builder, call.loc, columns, *sizes));
}

// The adjoint of im2col.
FailureOr<Results> buildCol2im(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<aten::Windows> windows = windowsOf(call);
  FailureOr<SmallVector<OpFoldResult>> output = call.sizes("output_size"),
                                       sizes = call.resultSizes();
  if (failed(self) || failed(windows) || failed(output) || failed(sizes))
    return failure();
  aten::BuiltSizes built(call.builder, call.loc);
  SmallVector<OpFoldResult> whole(ArrayRef(*sizes).drop_back(2));
  if (whole.size() == 1)
    whole.insert(whole.begin(), call.builder.getIndexAttr(1));
  for (const aten::Window &window : *windows)
    whole.push_back(call.builder.getIndexAttr(window.kernel));
  for (auto [window, size] : llvm::zip_equal(*windows, *output))
    whole.push_back(built.get(aten::windowPositions(built, window, built.of(size))));
  FailureOr<Value> columns = buildView(call.builder, call.loc, *self, whole);
  if (failed(columns))
    return failure();
  Value image = aten::buildFold(call.builder, call.loc, *columns, *output, *windows);
  return one(buildView(call.builder, call.loc, image, *sizes));
}

} // namespace shardc::torch_export
