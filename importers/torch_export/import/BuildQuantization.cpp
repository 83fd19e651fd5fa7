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
  Expr scale = f.tensorOrNumber("scale", f32), zero = f.tensorOrNumber("zero_point", type);
  auto low = static_cast<double>(f.integer("quant_min")),
       high = static_cast<double>(f.integer("quant_max"));
  if (f.failed())
    return failure();
  SmallVector<OpFoldResult> shape(x.rank(), f.one());
  if (call.schema.find("axis"))
    shape[f.dim("axis", x.rank())] = f.sizes(scale).front();
  if (f.failed())
    return failure();
  bool isList = call.schema.find("axis");
  auto beside = [&](Expr value) {
    return view(value, isList ? ArrayRef(shape) : ArrayRef<OpFoldResult>());
  };
  Expr narrow = cast(beside(scale), f32);
  scale = cast(narrow, type);
  zero = cast(beside(zero), type);
  Expr step = f.op("aten.round", {{"self", {(x * cast(1.0 / narrow, type)).value}}}) + zero;
  Expr isWithin = logicalAnd(ge(step, low), le(step, high));
  Expr limited = f.op("aten.clamp", {{"self", {step.value}},
                                     {"min", {step.number(low).value}},
                                     {"max", {step.number(high).value}}});
  Expr rounded = f.detached((limited - zero) * scale);
  Expr passing = where(isWithin, x, 0);
  Expr value = rounded + (passing - f.detached(passing));
  FailureOr<Results> result = f.result(value);
  if (failed(result))
    return failure();
  if (StringRef(call.schema.overload).contains("cachemask"))
    result->push_back(isWithin.value);
  return result;
}

} // namespace shardc::torch_export
