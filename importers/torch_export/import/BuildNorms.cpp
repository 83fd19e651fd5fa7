// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layer and group norm with their statistics, and the backward overloads that read those.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Standard.h"

#include "dialects/aten/SumTo.h"

using namespace mlir;

namespace shardc::torch_export {
//===----------------------------------------------------------------------===//
// Layer norm
//===----------------------------------------------------------------------===//

FailureOr<Results> buildNativeLayerNorm(Call &call) {
  FailureOr<Results> results = buildByName(call, "aten.layer_norm");
  if (failed(results))
    return failure();
  results->resize(std::max<size_t>(call.results.size(), 1));
  if (!call.isUsed(1) && !call.isUsed(2))
    return results;
  FailureOr<Value> input = call.tensor("input");
  FailureOr<std::optional<double>> eps = call.real("eps");
  FailureOr<std::optional<SmallVector<int64_t>>> normalized = call.integers("normalized_shape");
  if (failed(input) || failed(eps) || failed(normalized))
    return failure();
  int64_t rank = aten::typeOf(*input).getRank();
  Standard standard(call, dimRange(rank - static_cast<int64_t>((*normalized)->size()), rank));
  FailureOr<std::pair<Value, Value>> both = standard.statistics(*input, **eps);
  if (failed(both))
    return failure();
  (*results)[1] = standard.constant(both->first, call.resultElementType(1));
  (*results)[2] = standard.constant(both->second, call.resultElementType(2));
  return results;
}

FailureOr<Results> buildLayerNormBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_out"), input = call.tensor("input"),
                   mean = call.tensor("mean"), scale = call.tensor("rstd"),
                   weight = call.tensor("weight");
  FailureOr<std::optional<SmallVector<int64_t>>> normalized = call.integers("normalized_shape");
  FailureOr<OutputMask> mask = OutputMask::of(call, 3);
  if (failed(grad) || failed(input) || failed(mean) || failed(scale) || failed(weight) ||
      failed(normalized) || failed(mask))
    return failure();
  int64_t rank = aten::typeOf(*input).getRank();
  Standard standard(call, dimRange(rank - static_cast<int64_t>((*normalized)->size()), rank));
  Emitter &emit = standard.emit;
  Value wideGrad = standard.wide(*grad), wideScale = standard.wide(*scale);
  Value value = emit.mul(emit.sub(standard.wide(*input), standard.wide(*mean)), wideScale);
  SmallVector<Value> cotangents(3);
  if (mask->wants(call, 0)) {
    Value weighted = *weight ? emit.mul(wideGrad, standard.wide(*weight)) : wideGrad;
    FailureOr<Value> ofInput = standard.ofInput(weighted, value, wideScale);
    if (failed(ofInput))
      return failure();
    cotangents[0] = emit.cast(*ofInput, aten::elementTypeOf(*input));
  }
  // Weight and bias have the shape that is normalised.
  auto ofParameter = [&](unsigned i, Value cotangent) {
    auto type = RankedTensorType::get(aten::shapeOf(*input).take_back((*normalized)->size()),
                                      call.resultElementType(mask->resultOf(i)));
    cotangents[i] = sumTo(emit, cotangent, type);
  };
  if (mask->wants(call, 1))
    ofParameter(1, emit.mul(wideGrad, value));
  if (mask->wants(call, 2))
    ofParameter(2, wideGrad);
  return mask->results(cotangents);
}

//===----------------------------------------------------------------------===//
// Group norm
//===----------------------------------------------------------------------===//

namespace {

/// [batch, channels, ...] as [batch, groups, channels of a group, ...].
FailureOr<SmallVector<OpFoldResult>> groupedSizes(Call &call, Value input, int64_t groups) {
  int64_t channels = aten::shapeOf(input)[1];
  if (ShapedType::isDynamic(channels) || groups <= 0 || channels % groups != 0)
    return call.error() << "needs a known number of channels that divides into the groups";
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, input);
  sizes[1] = call.builder.getIndexAttr(groups);
  sizes.insert(sizes.begin() + 2, call.builder.getIndexAttr(channels / groups));
  return sizes;
}

} // namespace

FailureOr<Results> buildNativeGroupNorm(Call &call) {
  FailureOr<Value> input = call.tensor("input"), weight = call.tensor("weight"),
                   bias = call.tensor("bias");
  FailureOr<std::optional<int64_t>> groups = call.integer("group");
  FailureOr<std::optional<double>> eps = call.real("eps");
  if (failed(input) || failed(weight) || failed(bias) || failed(groups) || failed(eps))
    return failure();
  SmallVector<aten::NamedOperand> operands = {{"input", {*input}}};
  if (*weight)
    operands.push_back({"weight", {*weight}});
  if (*bias)
    operands.push_back({"bias", {*bias}});
  FailureOr<Value> value =
      call.buildOne("aten.group_norm", operands,
                    {call.integerAttr("num_groups", **groups),
                     call.builder.getNamedAttr("eps", call.builder.getF64FloatAttr(**eps))});
  if (failed(value))
    return failure();
  Results results{*value};
  results.resize(std::max<size_t>(call.results.size(), 1));
  if (!call.isUsed(1) && !call.isUsed(2))
    return results;
  FailureOr<SmallVector<OpFoldResult>> grouped = groupedSizes(call, *input, **groups);
  if (failed(grouped))
    return failure();
  Standard standard(call, dimRange(2, static_cast<int64_t>(grouped->size())));
  FailureOr<std::pair<Value, Value>> both =
      standard.statistics(standard.emit.view(*input, *grouped), **eps);
  if (failed(both))
    return failure();
  for (auto [i, statistic] : {std::pair(1, both->first), std::pair(2, both->second)})
    results[i] = standard.emit.cast(standard.emit.view(statistic, ArrayRef(*grouped).take_front(2)),
                                    call.resultElementType(i));
  return results;
}

FailureOr<Results> buildGroupNormBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_out"), input = call.tensor("input"),
                   mean = call.tensor("mean"), scale = call.tensor("rstd"),
                   weight = call.tensor("weight");
  FailureOr<std::optional<int64_t>> groups = call.integer("group");
  FailureOr<OutputMask> mask = OutputMask::of(call, 3);
  if (failed(grad) || failed(input) || failed(mean) || failed(scale) || failed(weight) ||
      failed(groups) || failed(mask))
    return failure();
  FailureOr<SmallVector<OpFoldResult>> grouped = groupedSizes(call, *input, **groups);
  if (failed(grouped))
    return failure();
  SmallVector<OpFoldResult> whole = sizesOf(call.builder, call.loc, *input);
  Standard standard(call, dimRange(2, static_cast<int64_t>(grouped->size())));
  Emitter &emit = standard.emit;
  OpFoldResult one = call.builder.getIndexAttr(1);
  // Statistics [batch, groups] and parameters [channels] beside what they belong to.
  auto statistic = [&](Value x) {
    SmallVector<OpFoldResult> sizes(grouped->size(), one);
    std::copy_n(grouped->begin(), 2, sizes.begin());
    return emit.view(standard.wide(x), sizes);
  };
  Value wideGrad = standard.wide(*grad), wideScale = statistic(*scale);
  Value value =
      emit.mul(emit.sub(emit.view(standard.wide(*input), *grouped), statistic(*mean)), wideScale);
  SmallVector<Value> cotangents(3);
  if (mask->wants(call, 0)) {
    Value weighted = wideGrad;
    if (*weight) {
      SmallVector<OpFoldResult> sizes(whole.size(), one);
      sizes[1] = whole[1];
      weighted = emit.mul(wideGrad, emit.view(standard.wide(*weight), sizes));
    }
    FailureOr<Value> ofInput = standard.ofInput(emit.view(weighted, *grouped), value, wideScale);
    if (failed(ofInput))
      return failure();
    cotangents[0] = emit.cast(emit.view(*ofInput, whole), aten::elementTypeOf(*input));
  }
  SmallVector<int64_t> others = dimsBesideChannels(static_cast<int64_t>(whole.size()));
  auto perChannel = [&](unsigned i, Value x) {
    cotangents[i] = emit.cast(emit.sum(x, others, /*keepdim=*/false),
                              call.resultElementType(mask->resultOf(i)));
  };
  if (mask->wants(call, 1))
    perChannel(1, emit.mul(wideGrad, emit.view(value, whole)));
  if (mask->wants(call, 2))
    perChannel(2, wideGrad);
  return mask->results(cotangents);
}

} // namespace shardc::torch_export
