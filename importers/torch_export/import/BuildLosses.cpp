// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and their backward overloads, as joint graphs have them before they are decomposed.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Likelihood.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Standard.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
FailureOr<LossReduction> lossReductionOf(Call &call) {
  FailureOr<std::optional<int64_t>> number = call.integer("reduction");
  if (failed(number))
    return failure();
  if (!*number || **number < 0 || **number > 2)
    return call.error() << "the argument 'reduction' has an unknown value";
  return static_cast<LossReduction>(**number);
}

Value totalOf(Emitter &emit, Value x) {
  return emit.sum(x, dimRange(0, aten::typeOf(x).getRank()), /*keepdim=*/false);
}

FailureOr<Likelihood> Likelihood::of(Call &call, Value self) {
  FailureOr<Value> given = call.tensor("self"), target = call.tensor("target"),
                   weight = call.tensor("weight");
  FailureOr<std::optional<int64_t>> ignored = call.integer("ignore_index");
  FailureOr<LossReduction> reduction = lossReductionOf(call);
  if (failed(given) || failed(target) || failed(weight) || failed(ignored) || failed(reduction))
    return failure();
  if (!self)
    self = *given;
  Emitter emit(call.builder, call.loc);
  int64_t dim = aten::typeOf(self).getRank() > 1 ? 1 : 0;
  Type integer = aten::elementTypeOf(*target), real = aten::elementTypeOf(self);
  Value counts = emit.binary<aten::NeOp>(*target, emit.integer(**ignored, integer));
  Value position = emit.where(counts, *target, emit.integer(0, integer));
  Value factor = emit.scalar(1, real);
  if (*weight)
    factor =
        aten::EmbeddingOp::create(call.builder, call.loc, emit.unsqueeze(*weight, 1), position);
  if (*weight) { // [..., 1] of the rows of one element
    SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, position);
    factor = emit.view(factor, sizes);
  }
  factor = emit.where(counts, factor, emit.scalar(0, real));
  return Likelihood{
      emit, *reduction, self, counts, emit.unsqueeze(position, dim), emit.unsqueeze(factor, dim),
      dim};
}

Value Likelihood::loss(ArrayRef<OpFoldResult> sizes) {
  Value read = aten::GatherOp::create(emit.getBuilder(), emit.getLoc(), self, dim, position);
  Value each = emit.unary<aten::NegOp>(emit.mul(read, factor));
  // Targets that are ignored have a derivative of 0 also where all are, and the mean is no number.
  each = emit.where(emit.unsqueeze(counts, dim), each, emit.scalar(0, aten::elementTypeOf(each)));
  if (reduction == LossReduction::None)
    return emit.view(each, sizes);
  Value total = totalOf(emit, each);
  return reduction == LossReduction::Mean ? emit.div(total, totalWeight()) : total;
}

FailureOr<Results> buildLikelihood(Call &call) {
  FailureOr<Likelihood> of = Likelihood::of(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(of) || failed(sizes))
    return failure();
  Value loss = of->loss(*sizes);
  // PyTorch leaves the sum of the weights at zero where nothing is divided by it.
  Value weights = of->reduction == LossReduction::None
                      ? of->emit.scalar(0, aten::elementTypeOf(of->self))
                      : of->totalWeight();
  return Results{loss, weights};
}

FailureOr<Results> buildLikelihoodBackward(Call &call) {
  FailureOr<Likelihood> of = Likelihood::of(call);
  FailureOr<Value> grad = call.tensor("grad_output"), weights = call.tensor("total_weight");
  if (failed(of) || failed(grad) || failed(weights))
    return failure();
  Emitter &emit = of->emit;
  Value each = *grad;
  if (of->reduction == LossReduction::None)
    each = emit.unsqueeze(each, of->dim);
  else if (of->reduction == LossReduction::Mean)
    each = emit.div(each, *weights);
  each = aten::NegOp::create(call.builder, call.loc, emit.mul(each, of->factor));
  // By comparison, so that the classes may be sharded.
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, of->self);
  SmallVector<OpFoldResult> along(sizes.size(), call.builder.getIndexAttr(1));
  along[of->dim] = sizes[of->dim];
  Value start =
      getValueOrCreateConstantIndexOp(call.builder, call.loc, call.builder.getIndexAttr(0));
  Value length = getValueOrCreateConstantIndexOp(call.builder, call.loc, sizes[of->dim]);
  Value classes =
      emit.view(emit.range(start, length, /*step=*/1, aten::elementTypeOf(of->position)), along);
  Value isIt = emit.binary<aten::EqOp>(classes, of->position);
  return Results{emit.where(isIt, each, emit.scalar(0, aten::elementTypeOf(each)))};
}

FailureOr<Results> buildMeanSquare(Call &call) {
  FailureOr<Value> self = call.tensor("self"), target = call.tensor("target");
  FailureOr<LossReduction> reduction = lossReductionOf(call);
  if (failed(self) || failed(target) || failed(reduction))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value difference = emit.sub(*self, *target);
  Value square = emit.mul(difference, difference);
  if (*reduction == LossReduction::None)
    return Results{square};
  return one(call.buildOne(*reduction == LossReduction::Mean ? "aten.mean" : "aten.sum",
                           {{"self", {square}}}));
}

FailureOr<Results> buildMeanSquareBackward(Call &call) {
  FailureOr<Value> self = call.tensor("self"), target = call.tensor("target"),
                   grad = call.tensor("grad_output");
  FailureOr<LossReduction> reduction = lossReductionOf(call);
  if (failed(self) || failed(target) || failed(grad) || failed(reduction))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value difference = emit.sub(*self, *target);
  Type type = aten::elementTypeOf(difference);
  Value result = emit.mul(emit.mul(difference, emit.scalar(2, type)), *grad);
  if (*reduction == LossReduction::Mean) {
    SmallVector<int64_t> all = dimRange(0, aten::typeOf(difference).getRank());
    result = emit.div(result, countAlong(emit, difference, all, type));
  }
  return Results{result};
}

} // namespace shardc::torch_export
