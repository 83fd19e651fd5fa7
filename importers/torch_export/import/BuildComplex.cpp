// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elementwise overloads where they have complex tensors.
#include "importers/torch_export/import/Complex.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;

namespace shardc::torch_export {

//===----------------------------------------------------------------------===//
// Pairs as they are
//===----------------------------------------------------------------------===//

FailureOr<Results> buildSamePairs(Call &call) { return one(call.tensor("self")); }

FailureOr<Results> buildConjugate(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  Emitter emit(call.builder, call.loc);
  return Results{isOfPairs(call, "self") ? Pairs(emit).conj(*self)
                                         : emit.unary<aten::AliasOp>(*self)};
}

FailureOr<Results> buildComplexNegative(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  return Results{Emitter(call.builder, call.loc).unary<aten::NegOp>(*self)};
}

FailureOr<Results> buildComplexPart(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  Emitter emit(call.builder, call.loc);
  if (!isOfPairs(call, "self"))
    return Results{emit.unary<aten::AliasOp>(*self)};
  Pairs pairs(emit);
  return Results{packetOf(call) == "real" ? pairs.real(*self) : pairs.imag(*self)};
}

namespace {
/// Two real arguments in the result's shape, whose last size is that of the pairs.
FailureOr<std::pair<Value, Value>> twoParts(Call &call, StringRef first, StringRef second) {
  FailureOr<Value> a = call.tensor(first), b = call.tensor(second);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  if (failed(a) || failed(b) || failed(sizes))
    return failure();
  sizes->pop_back();
  for (FailureOr<Value> *x : {&a, &b}) {
    *x = buildCast(call.builder, call.loc, **x, call.resultElementType());
    if (succeeded(*x) && aten::typeOf(*a).getShape() != aten::typeOf(*b).getShape())
      *x = buildExpand(call.builder, call.loc, **x, *sizes);
    if (failed(*x))
      return failure();
  }
  return std::pair(*a, *b);
}
} // namespace

FailureOr<Results> buildComplexOfParts(Call &call) {
  FailureOr<std::pair<Value, Value>> parts = twoParts(call, "real", "imag");
  if (failed(parts))
    return failure();
  Emitter emit(call.builder, call.loc);
  return Results{Pairs(emit).make(parts->first, parts->second)};
}

FailureOr<Results> buildPolar(Call &call) {
  FailureOr<std::pair<Value, Value>> parts = twoParts(call, "abs", "angle");
  if (failed(parts))
    return failure();
  auto [size, angle] = *parts;
  Emitter emit(call.builder, call.loc);
  return Results{Pairs(emit).make(emit.mul(size, emit.unary<aten::CosOp>(angle)),
                                  emit.mul(size, emit.unary<aten::SinOp>(angle)))};
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

FailureOr<Results> buildComplexAbs(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  Emitter emit(call.builder, call.loc);
  return Results{Pairs(emit).abs(*self)};
}

FailureOr<Results> buildComplexAngle(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  if (!isOfPairs(call, "self"))
    return call.error() << "the angle of real numbers is not supported: use torch.where";
  Emitter emit(call.builder, call.loc);
  return Results{Pairs(emit).angle(*self)};
}

FailureOr<Results> buildComplexFunction(Call &call) {
  using Function = Value (*)(Pairs &, Emitter &, Value);
  auto function =
      llvm::StringSwitch<Function>(packetOf(call))
          .Case("cos", [](Pairs &p, Emitter &, Value z) { return p.cos(z); })
          .Case("cosh", [](Pairs &p, Emitter &, Value z) { return p.cosh(z); })
          .Case("exp", [](Pairs &p, Emitter &, Value z) { return p.exp(z); })
          .Case("log", [](Pairs &p, Emitter &, Value z) { return p.log(z); })
          .Case("reciprocal", [](Pairs &p, Emitter &, Value z) { return p.reciprocal(z); })
          .Case("rsqrt", [](Pairs &p, Emitter &, Value z) { return p.reciprocal(p.sqrt(z)); })
          .Case("sgn", [](Pairs &p, Emitter &, Value z) { return p.sign(z); })
          .Case("sigmoid",
                [](Pairs &p, Emitter &e, Value z) {
                  Value one = p.number(1, 0, aten::elementTypeOf(z));
                  Value negative = e.unary<aten::NegOp>(z);
                  return p.reciprocal(e.add(p.exp(negative), one));
                })
          .Case("sin", [](Pairs &p, Emitter &, Value z) { return p.sin(z); })
          .Case("sinh", [](Pairs &p, Emitter &, Value z) { return p.sinh(z); })
          .Case("sqrt", [](Pairs &p, Emitter &, Value z) { return p.sqrt(z); })
          // tan z = -i tanh(iz)
          .Case("tan",
                [](Pairs &p, Emitter &e, Value z) {
                  Value turned = p.timesI(p.tanh(p.timesI(z)));
                  return e.unary<aten::NegOp>(turned);
                })
          .Case("tanh", [](Pairs &p, Emitter &, Value z) { return p.tanh(z); })
          .Default(nullptr);
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  if (!function)
    return call.error() << "is not a function of complex numbers";
  Emitter emit(call.builder, call.loc);
  Pairs pairs(emit);
  return Results{function(pairs, emit, *self)};
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

// self + alpha * other; of rsub, other - alpha * self.
FailureOr<Results> buildComplexSum(Call &call) {
  ComplexCall in(call);
  FailureOr<ComplexOperand> self = in.operand("self"), other = in.operand("other");
  if (failed(self) || failed(other) || failed(in.checkBroadcast({*self, *other})))
    return failure();
  StringRef packet = packetOf(call);
  if (packet == "rsub")
    std::swap(*self, *other);
  Value lhs = in.asPair(*self), rhs = in.asPair(*other);
  if (asReal(*call.find("alpha")) != 1.0) {
    FailureOr<ComplexOperand> alpha = in.operand("alpha");
    if (failed(alpha))
      return failure();
    rhs = in.product({rhs, true}, *alpha);
  }
  return Results{packet == "add" ? in.emit.add(lhs, rhs) : in.emit.sub(lhs, rhs)};
}

FailureOr<Results> buildComplexProduct(Call &call) {
  ComplexCall in(call);
  FailureOr<ComplexOperand> self = in.operand("self"), other = in.operand("other");
  if (failed(self) || failed(other) || failed(in.checkBroadcast({*self, *other})))
    return failure();
  return Results{in.product(*self, *other)};
}

FailureOr<Results> buildComplexQuotient(Call &call) {
  ComplexCall in(call);
  FailureOr<ComplexOperand> self = in.operand("self"), other = in.operand("other");
  if (failed(self) || failed(other) || failed(in.checkBroadcast({*self, *other})))
    return failure();
  return Results{in.quotient(*self, *other)};
}

// self + value * tensor1 * tensor2, or / tensor2.
FailureOr<Results> buildComplexAddProduct(Call &call) {
  ComplexCall in(call);
  FailureOr<ComplexOperand> self = in.operand("self"), first = in.operand("tensor1"),
                            second = in.operand("tensor2");
  if (failed(self) || failed(first) || failed(second) ||
      failed(in.checkBroadcast({*self, *first, *second})))
    return failure();
  bool isProduct = packetOf(call) == "addcmul";
  Value added = isProduct ? in.product(*first, *second) : in.quotient(*first, *second);
  if (asReal(*call.find("value")) != 1.0) {
    FailureOr<ComplexOperand> value = in.operand("value");
    if (failed(value))
      return failure();
    added = in.product({added, true}, *value);
  }
  return Results{in.sum(added, *self)};
}

FailureOr<Results> buildComplexPower(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> self = in.pair("self");
  if (failed(self))
    return failure();
  constexpr double most = 64;
  const Argument &exponent = *call.find("exponent");
  std::optional<double> number = asReal(exponent);
  if (number == 0.5)
    return Results{in.pairs.sqrt(*self)};
  if (number && *number == std::floor(*number) && std::abs(*number) <= most)
    return Results{in.pairs.pow(*self, static_cast<int64_t>(*number))};
  FailureOr<Value> by = in.pair("exponent");
  if (failed(by) || failed(in.checkBroadcast({{*self, true}, {*by, true}})))
    return failure();
  return Results{in.pairs.pow(*self, *by)};
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

// Equal where both parts are.
FailureOr<Results> buildComplexEqual(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> self = in.pair("self"), other = in.pair("other");
  if (failed(self) || failed(other) || failed(in.checkBroadcast({{*self, true}, {*other, true}})))
    return failure();
  Value parts = in.emit.binary<aten::EqOp>(*self, *other);
  auto last = call.builder.getDenseI64ArrayAttr({in.rankOf(parts)});
  Value equal = aten::AllOp::create(call.builder, call.loc, parts, last, /*keepdim=*/false);
  return Results{packetOf(call) == "eq" ? equal : in.emit.unary<aten::LogicalNotOp>(equal)};
}

FailureOr<Results> buildComplexAnyPart(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  Value parts = packetOf(call) == "isnan" ? in.emit.unary<aten::IsnanOp>(*self)
                                          : in.emit.unary<aten::IsinfOp>(*self);
  auto last = call.builder.getDenseI64ArrayAttr({in.rankOf(parts)});
  return Results{aten::AnyOp::create(call.builder, call.loc, parts, last, /*keepdim=*/false)};
}

FailureOr<Results> buildComplexWhere(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> condition = call.tensor("condition"), self = in.pair("self"),
                   other = in.pair("other");
  if (failed(condition) || failed(self) || failed(other) ||
      failed(in.checkBroadcast({{*condition, false}, {*self, true}, {*other, true}})))
    return failure();
  return Results{in.emit.where(in.pairs.beside(*condition), *self, *other)};
}

FailureOr<Results> buildComplexMaskedFill(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> mask = call.tensor("mask"), self = in.pair("self"), value = in.pair("value");
  if (failed(mask) || failed(self) || failed(value) ||
      failed(in.checkBroadcast({{*mask, false}, {*self, true}, {*value, true}})))
    return failure();
  return Results{in.emit.where(in.pairs.beside(*mask), *value, *self)};
}

} // namespace shardc::torch_export
