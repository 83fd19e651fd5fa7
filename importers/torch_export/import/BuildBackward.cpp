// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Backward overloads of joint graphs whose arguments are not those of the forward: activations of
// which the result is kept, softmax, attention and parts.
#include "importers/torch_export/import/Adjoint.h"
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// The cotangent of the result, and the forward's value that the overload gets with it.
struct GradAndValue {
  Value grad, value;
  Emitter emit;

  Value number(double x) { return emit.scalar(x, aten::elementTypeOf(value)); }
};

FailureOr<GradAndValue> gradAnd(Call &call, StringRef value) {
  FailureOr<Value> grad = call.tensor("grad_output"), other = call.tensor(value);
  if (failed(grad) || failed(other))
    return failure();
  return GradAndValue{*grad, *other, Emitter(call.builder, call.loc)};
}

} // namespace

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

FailureOr<Results> buildTanhBackward(Call &call) {
  FailureOr<GradAndValue> of = gradAnd(call, "output");
  if (failed(of))
    return failure();
  Value square = of->emit.mul(of->value, of->value);
  return Results{of->emit.mul(of->grad, of->emit.sub(of->number(1), square))};
}

FailureOr<Results> buildSigmoidBackward(Call &call) {
  FailureOr<GradAndValue> of = gradAnd(call, "output");
  if (failed(of))
    return failure();
  Value rest = of->emit.sub(of->number(1), of->value);
  return Results{of->emit.mul(of->grad, of->emit.mul(rest, of->value))};
}

FailureOr<Results> buildThresholdBackward(Call &call) {
  FailureOr<GradAndValue> of = gradAnd(call, "self");
  if (failed(of))
    return failure();
  FailureOr<Value> threshold = call.scalar(*call.find("threshold"), aten::elementTypeOf(of->value));
  if (failed(threshold))
    return failure();
  Value isBelow = of->emit.binary<aten::LeOp>(of->value, *threshold);
  return Results{
      of->emit.where(isBelow, of->emit.scalar(0, aten::elementTypeOf(of->grad)), of->grad)};
}

namespace {

/// Of an op by name; the overload may have been given the result in the place of `self`.
FailureOr<Results> backwardOfSelf(Call &call, StringRef op, StringRef self, StringRef isResult) {
  FailureOr<bool> given = call.boolean(isResult);
  FailureOr<Value> value = call.tensor(self);
  FailureOr<Value> cotangent = call.tensor("grad_output");
  if (failed(given) || failed(value) || failed(cotangent))
    return failure();
  if (*given)
    return call.error() << "the argument '" << isResult << "' is supported only as false";
  aten::NamedOperand operand{"self", {*value}};
  SmallVector<llvm::StringLiteral> unread = {"grad_output", "is_result", "self_is_result",
                                             "self_or_result"};
  FailureOr<Results> forward = buildByName(call, op, {.given = operand, .unread = unread});
  if (failed(forward))
    return failure();
  return adjointOf(call, forward->front().getDefiningOp(), *cotangent, {0});
}

} // namespace

FailureOr<Results> buildEluBackward(Call &call) {
  return backwardOfSelf(call, "aten.elu", "self_or_result", "is_result");
}

FailureOr<Results> buildLeakyReluBackward(Call &call) {
  return backwardOfSelf(call, "aten.leaky_relu", "self", "self_is_result");
}

//===----------------------------------------------------------------------===//
// Softmax and attention
//===----------------------------------------------------------------------===//

// softmax: (grad - sum(grad * y)) * y; log_softmax: grad - exp(y) * sum(grad). PyTorch computes in
// the element type of the result, which may be wider than that of the input.
FailureOr<Results> buildSoftmaxBackward(Call &call) {
  FailureOr<GradAndValue> of = gradAnd(call, "output");
  if (failed(of))
    return failure();
  int64_t rank = aten::typeOf(of->value).getRank();
  FailureOr<int64_t> dim = call.dimArgument("dim", rank);
  FailureOr<Type> type = call.elementType("input_dtype");
  if (failed(dim) || failed(type))
    return failure();
  Emitter &emit = of->emit;
  auto sum = [&](Value x) { return rank == 0 ? x : emit.sum(x, *dim, /*keepdim=*/true); };
  Value result;
  if (StringRef(call.schema.overload).starts_with("_log"))
    result = emit.sub(of->grad, emit.mul(emit.unary<aten::ExpOp>(of->value), sum(of->grad)));
  else
    result = emit.mul(of->value, emit.sub(of->grad, sum(emit.mul(of->grad, of->value))));
  return Results{emit.cast(result, *type)};
}

namespace {

/// The op `name` that the forward and the backward overload are about.
FailureOr<Operation *> attention(Call &call, StringRef name) {
  FailureOr<std::optional<double>> dropout = call.real("dropout_p"), scale = call.real("scale");
  FailureOr<bool> causal = call.boolean("is_causal");
  if (failed(dropout) || failed(scale) || failed(causal))
    return failure();
  if (dropout->value_or(0.0) != 0.0)
    return call.error() << "dropout in training is not supported: export the model in eval mode";
  SmallVector<aten::NamedOperand> operands;
  for (StringRef operand : {"query", "key", "value", "attn_mask"}) {
    FailureOr<Value> value = call.tensor(operand);
    if (failed(value))
      return failure();
    if (*value)
      operands.push_back({operand, {*value}});
  }
  SmallVector<NamedAttribute> attributes;
  if (*causal)
    attributes.push_back(call.builder.getNamedAttr("is_causal", call.builder.getUnitAttr()));
  if (*scale)
    attributes.push_back(call.builder.getNamedAttr("scale", call.builder.getF64FloatAttr(**scale)));
  return call.build(name, operands, attributes);
}

} // namespace

// Where a backward reads the log-sum-exp of the scores, the derivative below makes this very op
// again, and one of both remains.
FailureOr<Results> buildFlashAttention(Call &call) {
  FailureOr<Operation *> op =
      attention(call, call.isUsed(1) ? "aten.scaled_dot_product_flash_attention"
                                     : "aten.scaled_dot_product_attention");
  if (failed(op))
    return failure();
  Results results((*op)->getResults());
  results.resize(std::max<size_t>(call.results.size(), 1));
  return results;
}

FailureOr<Results> buildFlashAttentionBackward(Call &call) {
  FailureOr<Value> grad = call.tensor("grad_out");
  FailureOr<Operation *> op = attention(call, "aten.scaled_dot_product_attention");
  if (failed(grad) || failed(op))
    return failure();
  return adjointOf(call, *op, *grad, {0, 1, 2});
}

//===----------------------------------------------------------------------===//
// Parts, lookups
//===----------------------------------------------------------------------===//

namespace {

/// Of an op that takes a part of `self`, of which the overload says the sizes alone.
FailureOr<Results> backwardOfPart(Call &call, StringRef op) {
  FailureOr<Value> grad = call.tensor("grad_output");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(grad) || failed(sizes))
    return failure();
  static constexpr llvm::StringLiteral unread[] = {"grad_output", "input_sizes"};
  Emitter emit(call.builder, call.loc);
  aten::NamedOperand self{"self", {emit.zeros(*sizes, aten::elementTypeOf(*grad))}};
  FailureOr<Results> part = buildByName(call, op, {.given = self, .unread = unread});
  if (failed(part))
    return failure();
  return adjointOf(call, part->front().getDefiningOp(), *grad, {0});
}

} // namespace

FailureOr<Results> buildSelectBackward(Call &call) { return backwardOfPart(call, "aten.select"); }
FailureOr<Results> buildSliceBackward(Call &call) { return backwardOfPart(call, "aten.slice"); }

FailureOr<Results> buildEmbeddingBackward(Call &call) {
  FailureOr<GradAndValue> of = gradAnd(call, "indices");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  FailureOr<std::optional<int64_t>> padding = call.integer("padding_idx");
  FailureOr<bool> byFrequency = call.boolean("scale_grad_by_freq");
  if (failed(of) || failed(sizes) || failed(padding) || failed(byFrequency))
    return failure();
  if (*byFrequency)
    return call.error() << "the argument 'scale_grad_by_freq' is supported only as false";
  Value weight = of->emit.zeros(*sizes, aten::elementTypeOf(of->grad));
  FailureOr<Operation *> op =
      call.build("aten.embedding", {{"weight", {weight}}, {"indices", {of->value}}},
                 {call.integerAttr("padding_idx", padding->value_or(-1))});
  if (failed(op))
    return failure();
  return adjointOf(call, *op, of->grad, {0});
}

} // namespace shardc::torch_export
