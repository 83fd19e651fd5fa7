// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads of convolution and pooling.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

using namespace mlir;

namespace shardc::torch_export {

// `count` numbers of which a list of one stands for all; for a convolution along one dim, those of
// the image of height 1 that it becomes.
static SmallVector<int64_t> spread(ArrayRef<int64_t> list, bool line, int64_t neutral) {
  if (line)
    return {neutral, list.front()};
  return list.size() == 1 ? SmallVector<int64_t>{list[0], list[0]} : SmallVector<int64_t>(list);
}

namespace {

/// A convolution of images. One along a line is that of images of height 1.
struct Convolution {
  Operation *op = nullptr;
  bool line = false;

  static constexpr int64_t kHeight = 2;

  /// Of what the call says, with this bias (null for none).
  static FailureOr<Convolution> of(Call &call, Value bias) {
    FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight");
    FailureOr<std::optional<SmallVector<int64_t>>> stride = call.integers("stride"),
                                                   dilation = call.integers("dilation");
    FailureOr<std::optional<int64_t>> groups = call.integer("groups");
    if (failed(input) || failed(weight) || failed(stride) || failed(dilation) || failed(groups))
      return failure();
    if (call.schema.find("transposed")) {
      FailureOr<bool> transposed = call.boolean("transposed");
      if (failed(transposed))
        return failure();
      if (*transposed)
        return call.error() << "a transposed convolution is not supported";
    }
    int64_t rank = aten::typeOf(*weight).getRank();
    if ((rank != 3 && rank != 4) || aten::typeOf(*input).getRank() != rank)
      return call.error() << "only convolutions along one or two dims, in batches, are supported: "
                             "an input and a weight of 3 or of 4 dims, not "
                          << aten::typeOf(*input).getRank() << " and " << rank;
    Convolution found;
    found.line = rank == 3;
    if (found.line) {
      input = buildUnsqueeze(call.builder, call.loc, *input, kHeight);
      weight = buildUnsqueeze(call.builder, call.loc, *weight, kHeight);
      if (failed(input) || failed(weight))
        return failure();
    }
    SmallVector<int64_t> strides = spread(**stride, found.line, 1),
                         dilations = spread(**dilation, found.line, 1);
    FailureOr<SmallVector<int64_t>> padding =
        paddingOf(call, aten::shapeOf(*weight), dilations, found.line);
    if (failed(padding))
      return failure();
    SmallVector<aten::NamedOperand> operands = {{"input", {*input}}, {"weight", {*weight}}};
    if (bias)
      operands.push_back({"bias", {bias}});
    FailureOr<Operation *> op = call.build(
        "aten.conv2d", operands,
        {call.integersAttr("stride", strides), call.integersAttr("padding", *padding),
         call.integersAttr("dilation", dilations), call.integerAttr("groups", **groups)});
    if (failed(op))
      return failure();
    found.op = *op;
    return found;
  }

  static FailureOr<SmallVector<int64_t>> paddingOf(Call &call, ArrayRef<int64_t> weight,
                                                   ArrayRef<int64_t> dilations, bool line) {
    auto *word = std::get_if<std::string_view>(call.find("padding"));
    if (!word) {
      FailureOr<std::optional<SmallVector<int64_t>>> numbers = call.integers("padding");
      if (failed(numbers))
        return failure();
      return spread(**numbers, line, 0);
    }
    SmallVector<int64_t> padding = {0, 0};
    if (*word == "valid")
      return padding;
    if (*word != "same")
      return call.error() << "there is no padding '" << StringRef(*word) << "'";
    for (unsigned dim = 0; dim < 2; ++dim) {
      int64_t total = dilations[dim] * (weight[2 + dim] - 1);
      if (total % 2 != 0)
        return call.error() << "padding 'same' would differ on the two sides of dim "
                            << 2 + dim - line
                            << ": pad before the convolution, or use an odd kernel";
      padding[dim] = total / 2;
    }
    return padding;
  }

  /// An image of height 1 as the line that it is.
  Value asLine(Call &call, Value image) const {
    if (!line || !image)
      return image;
    auto type = aten::typeOf(image);
    SmallVector<int64_t> sizes(type.getShape());
    sizes.erase(sizes.begin() + kHeight);
    return aten::SqueezeOp::create(call.builder, call.loc, type.clone(sizes), image, {kHeight});
  }
};

} // namespace

// conv1d, as a convolution of images of height 1; conv2d with padding as a word; and the general
// convolution, of which one and two dims that are not transposed are supported.
FailureOr<Results> buildConvolution(Call &call) {
  FailureOr<Value> bias = call.tensor("bias");
  if (failed(bias))
    return failure();
  FailureOr<Convolution> convolution = Convolution::of(call, *bias);
  if (failed(convolution))
    return failure();
  return Results{convolution->asLine(call, convolution->op->getResult(0))};
}

// Of input, weight and bias; the forward is built without the bias, which every position gets.
FailureOr<Results> buildConvolutionBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<OutputMask> mask = OutputMask::of(call, 3);
  if (failed(grad) || failed(mask))
    return failure();
  FailureOr<Convolution> convolution = Convolution::of(call, Value());
  if (failed(convolution))
    return failure();
  FailureOr<Value> image = *grad;
  if (convolution->line)
    image = buildUnsqueeze(call.builder, call.loc, *grad, Convolution::kHeight);
  if (failed(image))
    return failure();
  FailureOr<SmallVector<Value>> cotangents =
      cotangentsOf(call, convolution->op, *image, {0, 1, kNoOperand}, *mask);
  if (failed(cotangents))
    return failure();
  for (Value &cotangent : *cotangents)
    cotangent = convolution->asLine(call, cotangent);
  if (mask->wants(call, 2)) {
    SmallVector<int64_t> others = {0, 2};
    if (!convolution->line)
      others.push_back(3);
    (*cotangents)[2] = Emitter(call.builder, call.loc).sum(*grad, others, /*keepdim=*/false);
  }
  return mask->results(*cotangents);
}

// [N, C, kernel, positions] as [N, C * kernel elements, all positions].
FailureOr<Results> buildIm2col(Call &call) {
  FailureOr<Results> windows = buildByName(call, "aten.windows");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(windows) || failed(sizes))
    return failure();
  return one(buildView(call.builder, call.loc, windows->front(), *sizes));
}

FailureOr<Results> buildMaxPool(Call &call) {
  FailureOr<Results> results = buildByName(call, "aten.max_pool2d");
  if (succeeded(results))
    results->resize(2); // positions are for the backward alone
  return results;
}

// By name too; its default of `count_include_pad` is true, which an op cannot leave out.
FailureOr<Results> buildAvgPool(Call &call) { return buildByName(call, "aten.avg_pool2d"); }

} // namespace shardc::torch_export
