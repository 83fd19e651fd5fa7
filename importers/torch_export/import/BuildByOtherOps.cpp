// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that are other ops with arguments changed: casts, creation, variants of reductions.
#include "importers/torch_export/import/BuildersInternal.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Emitter.h"

#include <limits>

using namespace mlir;

namespace shardc::torch_export {

//===----------------------------------------------------------------------===//
// Copies and casts
//===----------------------------------------------------------------------===//

// Moves between devices and changes of memory layout are not seen here: only the element type is.
FailureOr<Results> buildCast(Call &call) {
  FailureOr<Value> self = call.tensor(call.schema.arguments.front().name);
  Type type = call.resultElementType();
  if (failed(self) || !type)
    return failure();
  if (aten::elementTypeOf(*self) != type)
    return one(buildCast(call.builder, call.loc, *self, type));
  // `to` and `type_as` return the tensor itself then, the others copy.
  StringRef packet = StringRef(call.schema.overload).split('.').first;
  bool asksForCopy = false;
  if (call.schema.find("copy")) {
    FailureOr<bool> copy = call.boolean("copy");
    if (failed(copy))
      return failure();
    asksForCopy = *copy;
  }
  bool isSelf = (packet == "to" && !asksForCopy) || packet == "type_as";
  return one(call.buildOne(isSelf ? "aten.alias" : "aten.clone", {{"self", {*self}}}));
}

FailureOr<Results> buildCopy(Call &call) {
  FailureOr<Value> self = call.tensor("self"), source = call.tensor("src");
  if (failed(self) || failed(source))
    return failure();
  FailureOr<Value> value = buildCast(call.builder, call.loc, *source, aten::elementTypeOf(*self));
  if (succeeded(value) && aten::shapeOf(*value) != aten::shapeOf(*self))
    value = buildExpand(call.builder, call.loc, *value, sizesOf(call.builder, call.loc, *self));
  if (failed(value))
    return failure();
  return one(buildOverwritten(call.builder, call.loc, *self, *value));
}

FailureOr<Results> buildDetach(Call &call) {
  FailureOr<Results> results = buildByName(call, "aten.alias");
  if (succeeded(results))
    results->front().getDefiningOp<aten::AliasOp>().setDetached(true);
  return results;
}

// `narrow_copy` and its kin: copies of what the views of their names show.
FailureOr<Results> buildCopiedView(Call &call) {
  StringRef overload = call.schema.overload;
  auto [packet, kind] = overload.split('.');
  std::string view = (packet.drop_back(StringRef("_copy").size()) + "." + kind).str();
  const Overload *row = findOverload(view);
  if (!row)
    return call.error() << "the view that it copies is not supported";
  FailureOr<Results> results = row->build ? row->build(call) : buildByName(call, row->op);
  if (failed(results))
    return failure();
  for (Value &result : *results)
    result = aten::CloneOp::create(call.builder, call.loc, result);
  return results;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

FailureOr<Results> buildReversedSub(Call &call) {
  FailureOr<Results> forward = buildByName(call, "aten.sub");
  if (failed(forward))
    return failure();
  auto op = forward->front().getDefiningOp<aten::SubOp>();
  if (op.getAlpha().convertToDouble() != 1.0)
    return call.error() << "a factor 'alpha' is not supported";
  Value self = op.getSelf();
  op.getSelfMutable().assign(op.getOther());
  op.getOtherMutable().assign(self);
  return forward;
}

FailureOr<Results> buildFloorDivide(Call &call) {
  FailureOr<Results> quotient = buildByName(call, "aten.div");
  if (failed(quotient))
    return failure();
  // Built again with the mode: it decides the element type.
  Operation *plain = quotient->front().getDefiningOp();
  Value self = plain->getOperand(0), other = plain->getOperand(1);
  plain->erase();
  return one(call.buildOne(
      "aten.div", {{"self", {self}}, {"other", {other}}},
      {call.builder.getNamedAttr("rounding_mode", call.builder.getStringAttr("floor"))}));
}

//===----------------------------------------------------------------------===//
// Reductions and normalisation
//===----------------------------------------------------------------------===//

FailureOr<Results> buildExtremumWithPosition(Call &call) {
  bool isMax = call.schema.overload == "max.dim";
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> keepdim = call.boolean("keepdim");
  if (failed(self) || failed(keepdim))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  SmallVector<NamedAttribute> attributes;
  if (*keepdim)
    attributes.push_back(call.builder.getNamedAttr("keepdim", call.builder.getUnitAttr()));
  auto with = [&](NamedAttribute attribute) {
    SmallVector<NamedAttribute> all = attributes;
    all.push_back(attribute);
    return all;
  };
  FailureOr<Value> value = call.buildOne(isMax ? "aten.amax" : "aten.amin", {{"self", {*self}}},
                                         with(call.integersAttr("dim", *dim)));
  FailureOr<Value> at = call.buildOne(isMax ? "aten.argmax" : "aten.argmin", {{"self", {*self}}},
                                      with(call.integerAttr("dim", *dim)));
  if (failed(value) || failed(at))
    return failure();
  return Results{*value, *at};
}

FailureOr<Results> buildVariance(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> unbiased = call.schema.find("unbiased") ? call.boolean("unbiased") : true;
  FailureOr<std::optional<double>> correction = call.real("correction");
  if (failed(self) || failed(unbiased) || failed(correction))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  SmallVector<NamedAttribute> attributes = {call.builder.getNamedAttr(
      "correction", call.builder.getF64FloatAttr(correction->value_or(*unbiased ? 1.0 : 0.0)))};
  FailureOr<Attribute> dim = buildAttribute(call, "dim", "DenseI64ArrayAttr", rank);
  FailureOr<Attribute> keepdim = buildAttribute(call, "keepdim", "UnitAttr", rank);
  if (failed(dim) || failed(keepdim))
    return failure();
  if (*dim)
    attributes.push_back(call.builder.getNamedAttr("dim", *dim));
  if (*keepdim)
    attributes.push_back(call.builder.getNamedAttr("keepdim", *keepdim));
  return one(call.buildOne("aten.var", {{"self", {*self}}}, attributes));
}

FailureOr<Results> buildVarianceAndMean(Call &call) {
  FailureOr<Results> variance = buildVariance(call);
  if (failed(variance))
    return failure();
  auto op = variance->front().getDefiningOp<aten::VarOp>();
  SmallVector<NamedAttribute> attributes;
  for (StringRef name : {"dim", "keepdim"})
    if (Attribute attribute = op->getAttr(name))
      attributes.push_back(call.builder.getNamedAttr(name, attribute));
  FailureOr<Value> mean = call.buildOne("aten.mean", {{"self", {op.getSelf()}}}, attributes);
  if (failed(mean))
    return failure();
  return Results{variance->front(), *mean};
}

// The root of the variance. Where that is 0 its derivative would be infinite; PyTorch's is 0, so
// that the root is of another number there.
static Value buildRoot(Call &call, Value variance) {
  Emitter emit(call.builder, call.loc);
  Type type = aten::elementTypeOf(variance);
  Value zero = emit.scalar(0, type), isZero = emit.binary<aten::EqOp>(variance, zero);
  Value root = emit.unary<aten::SqrtOp>(emit.where(isZero, emit.scalar(1, type), variance));
  return emit.where(isZero, zero, root);
}

FailureOr<Results> buildDeviation(Call &call) {
  FailureOr<Results> variance = buildVariance(call);
  if (failed(variance))
    return failure();
  return Results{buildRoot(call, variance->front())};
}

FailureOr<Results> buildDeviationAndMean(Call &call) {
  FailureOr<Results> both = buildVarianceAndMean(call);
  if (failed(both))
    return failure();
  return Results{buildRoot(call, both->front()), both->back()};
}

// dot and mv: products with a vector.
FailureOr<Results> buildVectorProduct(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<Value> other = call.tensor(call.schema.find("vec") ? "vec" : "tensor");
  if (failed(self) || failed(other))
    return failure();
  return one(call.buildOne("aten.matmul", {{"self", {*self}}, {"other", {*other}}}));
}

// A row that is minus infinity everywhere gives zeros.
FailureOr<Results> buildSafeSoftmax(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  Type type = call.resultElementType();
  if (failed(self) || !type)
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  Emitter emit(call.builder, call.loc);
  Value x = emit.cast(*self, type), zero = emit.scalar(0, type);
  bool isNumber = aten::typeOf(x).getRank() == 0;
  if (!isNumber && aten::shapeOf(x)[*dim] == 0)
    return one(call.buildOne("aten.softmax", {{"self", {x}}}, {call.integerAttr("dim", *dim)}));
  Value least = emit.scalar(-std::numeric_limits<double>::infinity(), type);
  Value most = isNumber ? x : emit.amax(x, *dim, /*keepdim=*/true);
  Value isAway = emit.binary<aten::EqOp>(most, least);
  FailureOr<Value> softmax = call.buildOne(
      "aten.softmax", {{"self", {emit.where(isAway, zero, x)}}}, {call.integerAttr("dim", *dim)});
  if (failed(softmax))
    return failure();
  return Results{emit.where(isAway, zero, *softmax)};
}

FailureOr<Results> buildInternalSoftmax(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<bool> toFloat = call.boolean("half_to_float");
  if (failed(self) || failed(toFloat))
    return failure();
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  if (failed(dim))
    return failure();
  SmallVector<NamedAttribute> attributes = {call.integerAttr("dim", *dim)};
  if (*toFloat)
    attributes.push_back(
        call.builder.getNamedAttr("dtype", TypeAttr::get(call.builder.getF32Type())));
  bool isLog = StringRef(call.schema.overload).starts_with("_log");
  return one(
      call.buildOne(isLog ? "aten.log_softmax" : "aten.softmax", {{"self", {*self}}}, attributes));
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

namespace {

FailureOr<Results> fill(Call &call, const Argument &value) {
  Type type = call.resultElementType();
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (!type || failed(sizes))
    return failure();
  FailureOr<Value> scalar = call.scalar(value, type);
  if (failed(scalar))
    return failure();
  return Results{aten::buildFull(call.builder, *scalar, *sizes)};
}

bool isInteger(const Argument &argument) {
  return std::holds_alternative<int64_t>(argument) || std::holds_alternative<SymIntArg>(argument);
}

} // namespace

FailureOr<Results> buildZeros(Call &call) { return fill(call, int64_t(0)); }

FailureOr<Results> buildZeroed(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<Results> zeros = buildZeros(call);
  if (failed(self) || failed(zeros))
    return failure();
  return one(buildOverwritten(call.builder, call.loc, *self, zeros->front()));
}

FailureOr<Results> buildOnes(Call &call) { return fill(call, int64_t(1)); }

FailureOr<Results> buildFull(Call &call) {
  const Argument *value = call.find("fill_value");
  return fill(call, value ? *value : *call.find("s"));
}

FailureOr<Results> buildFilled(Call &call) {
  const Argument &value = *call.find("value");
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  if (!std::holds_alternative<TensorArg>(value)) {
    FailureOr<Results> filled = fill(call, value);
    if (failed(filled))
      return failure();
    return one(buildOverwritten(call.builder, call.loc, *self, filled->front()));
  }
  FailureOr<Value> scalar = call.tensor("value");
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(scalar) || failed(sizes))
    return failure();
  FailureOr<Value> element = buildCast(call.builder, call.loc, *scalar, call.resultElementType());
  if (failed(element))
    return failure();
  FailureOr<Value> filled = buildExpand(call.builder, call.loc, *element, *sizes);
  if (failed(filled))
    return failure();
  return one(buildOverwritten(call.builder, call.loc, *self, *filled));
}

FailureOr<Results> buildArange(Call &call) {
  Type type = call.resultElementType();
  const Argument zero = int64_t(0), unit = int64_t(1);
  const Argument &start = call.schema.find("start") ? *call.find("start") : zero;
  const Argument &step = call.schema.find("step") ? *call.find("step") : unit;
  const Argument &end = *call.find("end");
  auto range = [&](OpFoldResult first, OpFoldResult last, int64_t by) {
    SmallVector<aten::NamedOperand> operands;
    SmallVector<NamedAttribute> attributes = {
        call.integerAttr("step", by), call.builder.getNamedAttr("dtype", TypeAttr::get(type))};
    for (auto [name, bound] : {std::pair("start", first), std::pair("end", last)}) {
      std::optional<int64_t> constant = getConstantIntValue(bound);
      if (!constant)
        operands.push_back({name, {cast<Value>(bound)}});
      attributes.push_back(
          call.integerAttr(std::string("static_") + name, constant.value_or(ShapedType::kDynamic)));
    }
    return call.buildOne("aten.arange", operands, attributes);
  };
  if (isInteger(start) && isInteger(end) && isInteger(step)) {
    FailureOr<OpFoldResult> first =
        call.schema.find("start") ? call.size("start") : OpFoldResult(call.builder.getIndexAttr(0));
    FailureOr<OpFoldResult> last = call.size("end");
    if (failed(first) || failed(last))
      return failure();
    if (!asReal(step))
      return call.error() << "a step that is no constant is not supported";
    return one(range(*first, *last, int64_t(*asReal(step))));
  }
  // Of floats: 0, 1, ... times the step plus the start.
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(sizes))
    return failure();
  FailureOr<Value> value = range(call.builder.getIndexAttr(0), sizes->front(), 1);
  FailureOr<Value> factor = call.scalar(step, type), summand = call.scalar(start, type);
  if (failed(value) || failed(factor) || failed(summand))
    return failure();
  value = call.buildOne("aten.mul", {{"self", {*value}}, {"other", {*factor}}});
  if (failed(value))
    return failure();
  return one(call.buildOne("aten.add", {{"self", {*value}}, {"other", {*summand}}}));
}

} // namespace shardc::torch_export
