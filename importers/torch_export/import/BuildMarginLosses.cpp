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

/// In the type of the loss where it has integers, which have no part of a margin.
Expr real(Formula &f, StringRef name) {
  Expr x = f.tensor(name);
  Type type = f.call.resultElementType();
  bool isWhole = x && !isa<FloatType>(x.elementType()) && isa_and_present<FloatType>(type);
  return isWhole ? cast(x, type) : x;
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

FailureOr<Results> buildSoftMargin(Call &call) {
  Formula f(call);
  Expr self = real(f, "self"), target = real(f, "target");
  if (f.failed())
    return failure();
  return reduced(f, f.op("aten.softplus", {{"self", {(-target * self).value}}},
                         {f.realAttr("threshold", 40)}));
}

} // namespace shardc::torch_export
