// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses and their backward overloads, as joint graphs have them before they are decomposed.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Standard.h"

#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

/// PyTorch's numbers of at::Reduction.
enum class Reduction { None = 0, Mean = 1, Sum = 2 };

FailureOr<Reduction> reductionOf(Call &call) {
  FailureOr<std::optional<int64_t>> number = call.integer("reduction");
  if (failed(number))
    return failure();
  if (!*number || **number < 0 || **number > 2)
    return call.error() << "the argument 'reduction' has an unknown value";
  return static_cast<Reduction>(**number);
}

/// The negative log-likelihood of classes along dim 1 (or 0 of a vector), of which `ignore_index`
/// does not count.
struct Likelihood {
  Emitter emit;
  Reduction reduction;
  Value self;
  Value position; ///< of the class, with a dim of 1; 0 where it is ignored
  Value factor;   ///< its weight, 0 where it is ignored; of the shape of `position`
  int64_t dim;

  static FailureOr<Likelihood> of(Call &call) {
    FailureOr<Value> self = call.tensor("self"), target = call.tensor("target"),
                     weight = call.tensor("weight");
    FailureOr<std::optional<int64_t>> ignored = call.integer("ignore_index");
    FailureOr<Reduction> reduction = reductionOf(call);
    if (failed(self) || failed(target) || failed(weight) || failed(ignored) || failed(reduction))
      return failure();
    Emitter emit(call.builder, call.loc);
    int64_t dim = aten::typeOf(*self).getRank() > 1 ? 1 : 0;
    Type integer = aten::elementTypeOf(*target), real = aten::elementTypeOf(*self);
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
        emit, *reduction, *self, emit.unsqueeze(position, dim), emit.unsqueeze(factor, dim), dim};
  }

  SmallVector<int64_t> all(Value x) const { return dimRange(0, aten::typeOf(x).getRank()); }
  Value total(Value x) { return emit.sum(x, all(x), /*keepdim=*/false); }
};

} // namespace

FailureOr<Results> buildLikelihood(Call &call) {
  FailureOr<Likelihood> of = Likelihood::of(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(of) || failed(sizes))
    return failure();
  Emitter &emit = of->emit;
  Value read = aten::GatherOp::create(call.builder, call.loc, of->self, of->dim, of->position);
  Value each = aten::NegOp::create(call.builder, call.loc, emit.mul(read, of->factor));
  Value weights = of->total(of->factor);
  Value loss = each;
  if (of->reduction == Reduction::None)
    loss = emit.view(each, *sizes);
  else
    loss = of->total(each);
  if (of->reduction == Reduction::Mean)
    loss = emit.div(loss, weights);
  // PyTorch leaves the sum of the weights at zero where nothing is divided by it.
  if (of->reduction == Reduction::None)
    weights = emit.scalar(0, aten::elementTypeOf(of->self));
  return Results{loss, weights};
}

FailureOr<Results> buildLikelihoodBackward(Call &call) {
  FailureOr<Likelihood> of = Likelihood::of(call);
  FailureOr<Value> grad = call.tensor("grad_output"), weights = call.tensor("total_weight");
  if (failed(of) || failed(grad) || failed(weights))
    return failure();
  Emitter &emit = of->emit;
  Value each = *grad;
  if (of->reduction == Reduction::None)
    each = emit.unsqueeze(each, of->dim);
  else if (of->reduction == Reduction::Mean)
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
  FailureOr<Reduction> reduction = reductionOf(call);
  if (failed(self) || failed(target) || failed(reduction))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value difference = emit.sub(*self, *target);
  Value square = emit.mul(difference, difference);
  if (*reduction == Reduction::None)
    return Results{square};
  return one(call.buildOne(*reduction == Reduction::Mean ? "aten.mean" : "aten.sum",
                           {{"self", {square}}}));
}

FailureOr<Results> buildMeanSquareBackward(Call &call) {
  FailureOr<Value> self = call.tensor("self"), target = call.tensor("target"),
                   grad = call.tensor("grad_output");
  FailureOr<Reduction> reduction = reductionOf(call);
  if (failed(self) || failed(target) || failed(grad) || failed(reduction))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value difference = emit.sub(*self, *target);
  Type type = aten::elementTypeOf(difference);
  Value result = emit.mul(emit.mul(difference, emit.scalar(2, type)), *grad);
  if (*reduction == Reduction::Mean) {
    SmallVector<int64_t> all = dimRange(0, aten::typeOf(difference).getRank());
    result = emit.div(result, countAlong(emit, difference, all, type));
  }
  return Results{result};
}

} // namespace shardc::torch_export
