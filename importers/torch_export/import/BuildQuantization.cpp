// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers rounded as a quantised tensor would hold them, which quantisation-aware training has in
// the place of quantised ones.
#include "importers/torch_export/import/Formula.h"

using namespace mlir;

namespace shardc::torch_export {

// One scale and zero point for all elements, or for each part along an axis. The derivative is that
// of the identity where the number is within the range, and 0 elsewhere.
FailureOr<Results> buildFakeQuantized(Call &call) {
  Formula f(call);
  Expr x = f.floats("self");
  if (f.failed())
    return failure();
  Type type = x.elementType();
  // PyTorch keeps scales, and divides by them, in f32.
  Type f32 = call.builder.getF32Type();
  Expr scale = f.tensorOrNumber("scale", f32);
  Expr zero = f.tensorOrNumber("zero_point", call.builder.getI64Type());
  Expr isOn = call.schema.find("fake_quant_enabled") ? f.tensor("fake_quant_enabled") : Expr();
  auto low = static_cast<double>(f.integer("quant_min")),
       high = static_cast<double>(f.integer("quant_max"));
  if (f.failed())
    return failure();
  SmallVector<OpFoldResult> shape;
  if (call.schema.find("axis")) {
    shape.assign(x.rank(), f.one());
    shape[f.dim("axis", x.rank())] = f.sizes(scale).front();
  }
  if (f.failed())
    return failure();
  scale = cast(view(scale, shape), f32);
  bool isWhole = !isa<FloatType>(zero.elementType());
  zero = cast(view(zero, shape), type);
  Expr steps = x * cast(1.0 / scale, type);
  scale = cast(scale, type);
  auto rounded = [&](Expr value) { return f.op("aten.round", {{"self", {value.value}}}); };
  Expr step = isWhole ? rounded(steps) + zero : rounded(steps + zero);
  step = where(isNaN(step), -kInfinity, step);
  Expr isWithin = logicalAnd(ge(step, low), le(step, high));
  Expr limited = f.op("aten.clamp", {{"self", {step.value}},
                                     {"min", {step.number(low).value}},
                                     {"max", {step.number(high).value}}});
  Expr passing = where(isWithin, x, 0);
  Expr value = f.detached((limited - zero) * scale) + (passing - f.detached(passing));
  if (isOn) {
    Expr isQuantised = gt(view(isOn, {}), 0);
    value = where(isQuantised, value, x);
    isWithin = logicalOr(isWithin, logicalNot(isQuantised));
  }
  FailureOr<Results> result = f.result(value);
  if (failed(result))
    return failure();
  if (StringRef(call.schema.overload).contains("cachemask"))
    result->push_back(isWithin.value);
  return result;
}

} // namespace shardc::torch_export
