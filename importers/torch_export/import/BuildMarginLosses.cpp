// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses that compare with a margin, and of counts, as torch.export leaves them.
#include "importers/torch_export/import/Formula.h"
#include "importers/torch_export/import/Likelihood.h"

#include <numbers>

using namespace mlir;

namespace shardc::torch_export {
namespace {

FailureOr<Results> reduced(Formula &f, Expr each) {
  FailureOr<LossReduction> reduction = lossReductionOf(f.call);
  if (failed(reduction))
    return failure();
  if (*reduction == LossReduction::None)
    return f.result(each);
  return f.result(
      f.op(*reduction == LossReduction::Mean ? "aten.mean" : "aten.sum", {{"self", {each.value}}}));
}

/// x, or 0 where that is less.
Expr positive(Formula &f, Expr x) {
  return f.op("aten.clamp", {{"self", {x.value}}, {"min", {x.number(0).value}}});
}

/// Likewise, without a derivative at 0.
Expr above(Formula &f, Expr x) { return f.op("aten.relu", {{"self", {x.value}}}); }

/// In the type of the loss where it has integers, which have no part of a margin.
Expr real(Formula &f, StringRef name) {
  Expr x = f.tensor(name);
  Type type = f.call.resultElementType();
  bool isWhole = x && !isa<FloatType>(x.elementType()) && isa_and_present<FloatType>(type);
  return isWhole ? cast(x, type) : x;
}

/// One row where it has not two dims.
Expr asRows(Expr x) {
  while (x.rank() < 2)
    x = unsqueeze(x, 0);
  return x;
}

Expr isNot(Expr x, double y) {
  return x.with(x.emit->binary<aten::NeOp>(x.value, x.number(y).value));
}

} // namespace

FailureOr<Results> buildHingeEmbedding(Call &call) {
  Formula f(call);
  Expr self = real(f, "self"), target = real(f, "target");
  double margin = f.real("margin", 1);
  if (f.failed())
    return failure();
  Expr far = where(isNot(target, 1), positive(f, margin - self), 0);
  return reduced(f, far + where(isNot(target, -1), self, 0));
}

FailureOr<Results> buildMarginRanking(Call &call) {
  Formula f(call);
  Expr x = real(f, "input1"), y = real(f, "input2"), target = real(f, "target");
  double margin = f.real("margin");
  if (f.failed())
    return failure();
  return reduced(f, positive(f, -target * (x - y) + margin));
}

FailureOr<Results> buildCosineEmbedding(Call &call) {
  Formula f(call);
  Expr x = real(f, "input1"), y = real(f, "input2"), target = real(f, "target");
  double margin = f.real("margin");
  if (f.failed())
    return failure();
  auto total = [&](Expr products) { return sum(products, products.rank() - 1, false); };
  constexpr double eps = 1e-12;
  Expr sizes = (total(x * x) + eps) * (total(y * y) + eps);
  Expr cosine = total(x * y) / sqrt(sizes);
  return reduced(f, where(eq(target, 1), 1.0 - cosine, 0) +
                        where(eq(target, -1), positive(f, cosine - margin), 0));
}

FailureOr<Results> buildTripletMargin(Call &call) {
  Formula f(call);
  Expr anchor = real(f, "anchor"), near = real(f, "positive"), far = real(f, "negative");
  double margin = f.real("margin", 1), p = f.real("p", 2), eps = f.real("eps", 1e-6);
  bool swaps = f.flag("swap");
  if (f.failed())
    return failure();
  auto distance = [&](Expr x, Expr y) {
    Expr difference = x - y + eps;
    return f.op("aten.linalg_vector_norm", {{"self", {difference.value}}},
                {f.realAttr("ord", p), call.integersAttr("dim", difference.rank() - 1)});
  };
  Expr toFar = distance(anchor, far);
  if (swaps)
    toFar = toFar.with(f.emit.binary<aten::MinimumOp>(toFar.value, distance(near, far).value));
  return reduced(f, positive(f, distance(anchor, near) - toFar + margin));
}

FailureOr<Results> buildPoissonLikelihood(Call &call) {
  Formula f(call);
  Expr x = real(f, "input"), target = real(f, "target");
  bool isLog = f.flag("log_input"), isFull = f.flag("full");
  double eps = f.real("eps", 1e-8);
  if (f.failed())
    return failure();
  Expr loss = isLog ? exp(x) - target * x : x - target * log(x + eps);
  if (isFull) {
    // Stirling's approximation, of counts above 1.
    Expr isSmall = le(target, 1), count = where(isSmall, 2, target);
    Expr rest = count * log(count) - count + log(count * (2 * std::numbers::pi)) * 0.5;
    loss = loss + where(isSmall, 0, rest);
  }
  return reduced(f, loss);
}

// Of rows of classes, each with its class, or of one row.
FailureOr<Results> buildMultiMargin(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), target = f.tensor("target"), weight = f.tensor("weight");
  double p = f.real("p", 1), margin = f.real("margin", 1);
  if (f.failed())
    return failure();
  if (p != 1 && p != 2)
    return call.error() << "the power of a margin is 1 or 2";
  FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
  if (failed(shape))
    return failure();
  Expr rows = asRows(x);
  Expr classes = view(target, {f.sizes(rows).front(), f.one()});
  Expr own = f.op("aten.gather", {{"self", {rows.value}}, {"index", {classes.value}}},
                  {call.integerAttr("dim", 1)});
  Expr apart = above(f, rows - own + margin);
  if (p == 2)
    apart = apart * apart;
  if (weight) {
    Expr vector = view(classes, {f.sizes(rows).front()});
    Expr factors = f.op("aten.index_select", {{"self", {weight.value}}, {"index", {vector.value}}},
                        {call.integerAttr("dim", 0)});
    apart = apart * unsqueeze(factors, 1);
  }
  Expr isOther =
      f.of(f.emit.binary<aten::NeOp>(unsqueeze(f.range(f.sizes(rows)[1]), 0).value, classes.value));
  Expr each = mean(where(isOther, apart, 0), 1);
  each = f.squeeze(each, 1);
  return reduced(f, shape->empty() && x.rank() < 2 ? view(each, {}) : each);
}

// Of rows of classes, each with several: those in front of the first negative one.
FailureOr<Results> buildMultiLabelMargin(Call &call) {
  Formula f(call);
  Expr x = f.tensor("self"), target = f.tensor("target");
  if (f.failed())
    return failure();
  Expr rows = asRows(x), classes = asRows(target);
  Expr ends = cast(lt(classes, 0), call.builder.getI64Type());
  Expr isLabel = eq(f.op("aten.cumsum", {{"self", {ends.value}}}, {call.integerAttr("dim", 1)}), 0);
  Expr labels = where(isLabel, classes, 0);
  Expr own = f.op("aten.gather", {{"self", {rows.value}}, {"index", {labels.value}}},
                  {call.integerAttr("dim", 1)});
  // [rows, labels, classes]
  Expr same = eq(unsqueeze(labels, 2), unsqueeze(unsqueeze(f.range(f.sizes(rows)[1]), 0), 0));
  Expr marked = logicalAnd(same, unsqueeze(isLabel, 2));
  Expr isTarget = gt(sum(cast(marked, call.builder.getI64Type()), 1, false), 0);
  Expr apart = above(f, 1.0 - unsqueeze(own, 2) + unsqueeze(rows, 1));
  Expr counts = logicalAnd(unsqueeze(isLabel, 2), unsqueeze(logicalNot(isTarget), 1));
  Expr each = f.squeeze(mean(sum(where(counts, apart, 0), 1, false), 1), 1);
  FailureOr<SmallVector<OpFoldResult>> shape = call.resultSizes();
  if (failed(shape))
    return failure();
  // Of a row alone PyTorch's export records a vector of one element.
  FailureOr<Results> loss = reduced(f, x.rank() < 2 ? view(each, *shape) : each);
  if (failed(loss) || call.schema.overload == "multilabel_margin_loss.default")
    return loss;
  loss->push_back(view(cast(isTarget, x.elementType()), f.sizes(target)).value);
  return loss;
}

FailureOr<Results> buildSoftMargin(Call &call) {
  Formula f(call);
  Expr self = real(f, "self"), target = real(f, "target");
  if (f.failed())
    return failure();
  return reduced(f, f.op("aten.softplus", {{"self", {(-target * self).value}}},
                         {f.realAttr("threshold", 40)}));
}

} // namespace shardc::torch_export
