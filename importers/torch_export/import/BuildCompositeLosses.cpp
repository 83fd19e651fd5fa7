// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses as torch.export leaves them where nothing is decomposed. Formulas are PyTorch's, with
// derivatives that are finite wherever its are.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/Likelihood.h"
#include "importers/torch_export/import/SliceBuilders.h"
#include "importers/torch_export/import/Standard.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

Value negated(Emitter &emit, Value x) { return emit.unary<aten::NegOp>(x); }

/// The mean of all elements as their sum by their number.
FailureOr<Results> reduced(Call &call, Value each) {
  FailureOr<LossReduction> reduction = lossReductionOf(call);
  if (failed(reduction))
    return failure();
  if (*reduction == LossReduction::None)
    return Results{each};
  return one(call.buildOne(*reduction == LossReduction::Mean ? "aten.mean" : "aten.sum",
                           {{"self", {each}}}));
}

/// Of a loss of self and target, element by element, with an optional weight.
template <typename Each> FailureOr<Results> elementwiseLoss(Call &call, Each each) {
  FailureOr<Value> self = call.tensor("self"), target = call.tensor("target"), weight = Value();
  if (call.find("weight"))
    weight = call.tensor("weight");
  if (failed(self) || failed(target) || failed(weight))
    return failure();
  Emitter emit(call.builder, call.loc);
  FailureOr<Value> loss = each(emit, *self, *target);
  if (failed(loss))
    return failure();
  return reduced(call, *weight ? emit.mul(*loss, *weight) : *loss);
}

/// log(x), or -100 where that is less. The derivative where x is 0 is 0, and no product of 0 and
/// infinity.
Value boundedLog(Emitter &emit, Value x) {
  Type type = aten::elementTypeOf(x);
  Value isZero = emit.binary<aten::EqOp>(x, emit.scalar(0, type));
  Value log = emit.unary<aten::LogOp>(emit.where(isZero, emit.scalar(1, type), x));
  Value least = emit.scalar(-100, type);
  return emit.where(isZero, least, emit.binary<aten::MaximumOp>(log, least));
}

/// A vector of classes beside a tensor that has them along `dim`.
Value alongClasses(Call &call, Value vector, Value tensor, int64_t dim) {
  SmallVector<OpFoldResult> sizes(aten::typeOf(tensor).getRank(), call.builder.getIndexAttr(1));
  sizes[dim] = sizesOf(call.builder, call.loc, vector).front();
  return Emitter(call.builder, call.loc).view(vector, sizes);
}

/// Cross entropy, given the logarithms of the probabilities.
struct CrossEntropy {
  Call &call;
  Emitter emit;
  Value logarithms, target, weight; ///< weight may be null
  double smoothing;
  LossReduction reduction;
  int64_t dim;
  SmallVector<OpFoldResult> sizes;

  Type type() const { return aten::elementTypeOf(logarithms); }
  Value classes() { return countAlong(emit, logarithms, {dim}, type()); }
  Value weighted(Value x) { return weight ? emit.mul(x, alongClasses(call, weight, x, dim)) : x; }
  Value ofClasses(Value x) { return negated(emit, emit.sum(x, {dim}, /*keepdim=*/false)); }

  /// The target has a probability for each class. A mean is one of targets, whatever they weigh.
  Value ofProbabilities() {
    Value wanted = target;
    if (smoothing > 0)
      wanted = emit.add(emit.mul(wanted, emit.scalar(1 - smoothing, type())),
                        emit.div(emit.scalar(smoothing, type()), classes()));
    Value each = weighted(emit.mul(logarithms, wanted));
    if (reduction == LossReduction::None)
      return ofClasses(each);
    Value total = negated(emit, totalOf(emit, each));
    if (reduction == LossReduction::Sum)
      return total;
    SmallVector<int64_t> others = dimRange(0, aten::typeOf(logarithms).getRank());
    llvm::erase(others, dim);
    return emit.div(total, countAlong(emit, logarithms, others, type()));
  }

  /// The target is the number of a class.
  FailureOr<Value> ofNumbers() {
    FailureOr<Likelihood> likelihood = Likelihood::of(call, logarithms);
    if (failed(likelihood))
      return failure();
    Value loss = likelihood->loss(sizes);
    if (smoothing == 0)
      return loss;
    Value smooth =
        emit.where(likelihood->counts, ofClasses(weighted(logarithms)), emit.scalar(0, type()));
    if (reduction != LossReduction::None)
      smooth = totalOf(emit, smooth);
    if (reduction == LossReduction::Mean)
      smooth = emit.div(smooth, likelihood->totalWeight());
    return emit.add(emit.mul(loss, emit.scalar(1 - smoothing, type())),
                    emit.mul(smooth, emit.div(emit.scalar(smoothing, type()), classes())));
  }
};

} // namespace

FailureOr<Results> buildCrossEntropy(Call &call) {
  FailureOr<Value> self = call.tensor("self"), target = call.tensor("target"),
                   weight = call.tensor("weight");
  FailureOr<std::optional<double>> smoothing = call.real("label_smoothing");
  FailureOr<LossReduction> reduction = lossReductionOf(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(self) || failed(target) || failed(weight) || failed(smoothing) || failed(reduction) ||
      failed(sizes))
    return failure();
  int64_t dim = aten::typeOf(*self).getRank() > 1 ? 1 : 0;
  FailureOr<Value> logarithms =
      call.buildOne("aten.log_softmax", {{"self", {*self}}}, {call.integerAttr("dim", dim)});
  if (failed(logarithms))
    return failure();
  CrossEntropy loss{call,        Emitter(call.builder, call.loc),
                    *logarithms, *target,
                    *weight,     **smoothing,
                    *reduction,  dim,
                    *sizes};
  if (isa<FloatType>(aten::elementTypeOf(*target)))
    return Results{loss.ofProbabilities()};
  return one(loss.ofNumbers());
}

/// nll_loss in one result.
FailureOr<Results> buildLikelihoodAlone(Call &call) {
  FailureOr<Likelihood> of = Likelihood::of(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(of) || failed(sizes))
    return failure();
  return Results{of->loss(*sizes)};
}

FailureOr<Results> buildBinaryCrossEntropy(Call &call) {
  return elementwiseLoss(call, [](Emitter &emit, Value x, Value target) -> FailureOr<Value> {
    Value one = emit.scalar(1, aten::elementTypeOf(x));
    Value ofNo = emit.mul(emit.sub(target, one), boundedLog(emit, emit.sub(one, x)));
    return emit.sub(ofNo, emit.mul(target, boundedLog(emit, x)));
  });
}

/// (1 - target) x + (1 + (pos_weight - 1) target) softplus(-x)
FailureOr<Results> buildBinaryCrossEntropyOfLogits(Call &call) {
  FailureOr<Value> positive = call.tensor("pos_weight");
  if (failed(positive))
    return failure();
  return elementwiseLoss(call, [&](Emitter &emit, Value x, Value target) -> FailureOr<Value> {
    Value one = emit.scalar(1, aten::elementTypeOf(x));
    Builder &builder = call.builder;
    // From 40 on, log(1 + exp(y)) is y in f64 too.
    FailureOr<Value> log =
        call.buildOne("aten.softplus", {{"self", {negated(emit, x)}}},
                      {builder.getNamedAttr("threshold", builder.getF64FloatAttr(40))});
    if (failed(log))
      return failure();
    Value factor = *log;
    if (*positive)
      factor = emit.mul(factor, emit.add(one, emit.mul(emit.sub(*positive, one), target)));
    return emit.add(emit.mul(emit.sub(one, target), x), factor);
  });
}

FailureOr<Results> buildAbsoluteLoss(Call &call) {
  return elementwiseLoss(call, [](Emitter &emit, Value x, Value target) -> FailureOr<Value> {
    return emit.unary<aten::AbsOp>(emit.sub(x, target));
  });
}

/// A square up to a difference of `bend`, and linear from there on: 0.5 scale s^2 + slope (|d| - s)
/// with s = min(|d|, bend).
static FailureOr<Results> bentLoss(Call &call, double bend, double scale, double slope) {
  return elementwiseLoss(call, [&](Emitter &emit, Value x, Value target) -> FailureOr<Value> {
    Type type = aten::elementTypeOf(x);
    Value size = emit.unary<aten::AbsOp>(emit.sub(x, target));
    Value small = emit.binary<aten::MinimumOp>(size, emit.scalar(bend, type));
    Value square = emit.mul(emit.mul(small, small), emit.scalar(0.5 * scale, type));
    return emit.add(square, emit.mul(emit.sub(size, small), emit.scalar(slope, type)));
  });
}

FailureOr<Results> buildSmoothAbsoluteLoss(Call &call) {
  FailureOr<std::optional<double>> beta = call.real("beta");
  if (failed(beta))
    return failure();
  return **beta == 0 ? buildAbsoluteLoss(call) : bentLoss(call, **beta, 1 / **beta, 1);
}

FailureOr<Results> buildHuberLoss(Call &call) {
  FailureOr<std::optional<double>> delta = call.real("delta");
  if (failed(delta))
    return failure();
  return bentLoss(call, **delta, 1, **delta);
}

/// target (log(target) - self), where a target of 0 counts 0.
FailureOr<Results> buildDivergence(Call &call) {
  FailureOr<bool> isLog = call.boolean("log_target");
  if (failed(isLog))
    return failure();
  return elementwiseLoss(call, [&](Emitter &emit, Value x, Value target) -> FailureOr<Value> {
    if (*isLog)
      return emit.mul(emit.unary<aten::ExpOp>(target), emit.sub(target, x));
    Type type = aten::elementTypeOf(target);
    Value isZero = emit.binary<aten::EqOp>(target, emit.scalar(0, type));
    Value log = emit.unary<aten::LogOp>(emit.where(isZero, emit.scalar(1, type), target));
    return emit.sub(emit.mul(target, log), emit.mul(target, x));
  });
}

/// Losses of plain exports bring their operands to one shape with it.
FailureOr<Results> buildBroadcastTensors(Call &call) {
  FailureOr<SmallVector<Value>> tensors = call.tensors("tensors");
  if (failed(tensors))
    return failure();
  Emitter emit(call.builder, call.loc);
  Results results;
  for (auto [i, tensor] : llvm::enumerate(*tensors)) {
    FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes(unsigned(i));
    if (failed(sizes))
      return failure();
    results.push_back(
        sizesOf(call.builder, call.loc, tensor) == *sizes ? tensor : emit.full(*sizes, tensor));
  }
  return results;
}

} // namespace shardc::torch_export
