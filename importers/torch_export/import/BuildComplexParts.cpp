// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Overloads that copy, join, sum or rearrange complex tensors and need to know of the dim of the
// pairs. Others are on pairs what they are on real numbers (COMPLEX_PARTS in ComplexOverloads.def).
#include "importers/torch_export/import/Complex.h"
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/BuiltSizes.h"

using namespace mlir;

namespace shardc::torch_export {

static bool isComplex(const TensorMeta *meta) { return meta && meta->isComplex(); }

//===----------------------------------------------------------------------===//
// Copies, casts and creation
//===----------------------------------------------------------------------===//

/// A tensor in another element type. Of a complex number only the real part stays in a real one.
static FailureOr<Value> converted(ComplexCall &in, Value value, bool isPair, Type type,
                                  bool becomesPair) {
  if (becomesPair) {
    Value numbers = in.emit.cast(value, type);
    return isPair ? numbers : in.pairs.ofReal(numbers);
  }
  if (isPair && type.isInteger(1))
    return in.emit.unary<aten::LogicalNotOp>(in.pairs.isZero(value));
  return in.emit.cast(isPair ? in.pairs.real(value) : value, type);
}

FailureOr<Results> buildComplexCast(Call &call) {
  StringRef name = call.schema.arguments.front().name;
  FailureOr<Value> self = call.tensor(name);
  Type type = call.resultElementType();
  if (failed(self) || !type)
    return failure();
  bool isPair = isOfPairs(call, name), becomesPair = isComplex(call.results.front());
  ComplexCall in(call);
  FailureOr<Value> result = converted(in, *self, isPair, type, becomesPair);
  if (succeeded(result) && *result == *self) {
    // `to` and `type_as` return the tensor itself then, the others copy.
    StringRef packet = packetOf(call);
    bool isSelf = packet == "to" || packet == "type_as";
    return one(call.buildOne(isSelf ? "aten.alias" : "aten.clone", {{"self", {*self}}}));
  }
  return one(result);
}

/// `value` written over all of self.
static FailureOr<Results> overwritten(Call &call, Value self, Value value) {
  FailureOr<Value> whole = value;
  if (aten::shapeOf(value) != aten::shapeOf(self))
    whole = buildExpand(call.builder, call.loc, value, sizesOf(call.builder, call.loc, self));
  if (failed(whole))
    return failure();
  return one(buildOverwritten(call.builder, call.loc, self, *whole));
}

FailureOr<Results> buildComplexCopy(Call &call) {
  FailureOr<Value> self = call.tensor("self"), source = call.tensor("src");
  if (failed(self) || failed(source))
    return failure();
  ComplexCall in(call);
  FailureOr<Value> value = converted(in, *source, isOfPairs(call, "src"),
                                     aten::elementTypeOf(*self), isOfPairs(call, "self"));
  if (failed(value))
    return failure();
  return overwritten(call, *self, *value);
}

FailureOr<Results> buildComplexFilled(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  ComplexCall in(call);
  FailureOr<ComplexOperand> value = in.operand("value");
  if (failed(self) || failed(value))
    return failure();
  FailureOr<Value> number = converted(in, value->value, value->isPair, aten::elementTypeOf(*self),
                                      isOfPairs(call, "self"));
  if (failed(number))
    return failure();
  return overwritten(call, *self, *number);
}

FailureOr<Results> buildComplexFull(Call &call) {
  bool isOne = packetOf(call).contains("ones");
  if (!isComplex(call.results.front()))
    return isOne ? buildOnes(call) : buildFull(call);
  ComplexCall in(call);
  FailureOr<SmallVector<OpFoldResult>> sizes = call.resultSizes();
  FailureOr<Value> number = in.pairs.number(1, 0, in.type);
  if (!isOne)
    number = in.pair(call.schema.find("fill_value") ? "fill_value" : "s");
  if (failed(sizes) || failed(number))
    return failure();
  return one(buildExpand(call.builder, call.loc, *number, *sizes));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

FailureOr<Results> buildComplexReduction(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> self = in.pair("self");
  FailureOr<std::optional<SmallVector<int64_t>>> listed = call.integers("dim");
  FailureOr<bool> keepdim = call.boolean("keepdim");
  if (failed(self) || failed(listed) || failed(keepdim))
    return failure();
  int64_t rank = in.rankOf(*self);
  SmallVector<int64_t> dims = listed->value_or(SmallVector<int64_t>());
  for (int64_t &dim : dims) {
    FailureOr<int64_t> counted = call.dim(dim, rank + (call.countsPairs ? 1 : 0));
    if (failed(counted))
      return failure();
    dim = *counted;
  }
  if (dims.empty())
    llvm::append_range(dims, llvm::seq<int64_t>(0, rank));
  if (rank == 0)
    return one(call.buildOne("aten.clone", {{"self", {*self}}}));
  std::string op = ("aten." + packetOf(call)).str();
  if (op == "aten.cumsum")
    return one(call.buildOne(op, {{"self", {*self}}}, {call.integerAttr("dim", dims.front())}));
  SmallVector<NamedAttribute> attributes = {call.integersAttr("dim", dims)};
  if (*keepdim)
    attributes.push_back(call.builder.getNamedAttr("keepdim", call.builder.getUnitAttr()));
  return one(call.buildOne(op, {{"self", {*self}}}, attributes));
}

// That of the absolute values.
FailureOr<Results> buildComplexNorm(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  ComplexCall in(call);
  call.countsPairs = false;
  aten::NamedOperand sizes{"self", {in.pairs.abs(*self)}};
  return buildByName(call, "aten.linalg_vector_norm", {.given = sizes, .unread = {}});
}

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

FailureOr<Results> buildComplexJoin(Call &call) {
  FailureOr<SmallVector<Value>> tensors = call.tensors("tensors");
  if (failed(tensors))
    return failure();
  ComplexCall in(call);
  bool isStack = packetOf(call) == "stack";
  auto rank = static_cast<int64_t>(call.results.front()->sizes.size()) - (isStack ? 1 : 0);
  SmallVector<Value> parts;
  for (auto [tensor, meta] : llvm::zip_equal(*tensors, call.recordedList("tensors"))) {
    FailureOr<Value> part = converted(in, tensor, isComplex(meta), in.type, /*becomesPair=*/true);
    if (failed(part))
      return failure();
    // A vector of no elements joins anything.
    if (in.rankOf(*part) == rank)
      parts.push_back(*part);
  }
  FailureOr<int64_t> dim = call.dimArgument("dim", rank + 1 + (isStack ? 1 : 0));
  if (failed(dim))
    return failure();
  return one(call.buildOne(isStack ? "aten.stack" : "aten.cat", {{"tensors", parts}},
                           {call.integerAttr("dim", *dim)}));
}

FailureOr<Results> buildComplexPad(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<SmallVector<int64_t>>> pad = call.integers("pad");
  if (failed(self) || failed(pad))
    return failure();
  auto padded = [&](Value x, ArrayRef<int64_t> widths) -> Value {
    return aten::ConstantPadNdOp::create(call.builder, call.loc, x, widths, APFloat(0.0));
  };
  SmallVector<int64_t> widths = {0, 0};
  llvm::append_range(widths, **pad);
  Value zeros = padded(*self, widths);
  if (call.isNone("value") || asReal(*call.find("value")).value_or(1.0) == 0.0)
    return Results{zeros};
  FailureOr<Value> value = in.pair("value");
  if (failed(value))
    return failure();
  // Where a tensor of ones is padded with zeros.
  Value part = in.pairs.real(*self);
  Value ones = in.emit.full(sizesOf(call.builder, call.loc, part), in.emit.scalar(1, in.type));
  Value isInside = in.emit.binary<aten::NeOp>(padded(ones, **pad), in.emit.scalar(0, in.type));
  return Results{in.emit.where(in.pairs.beside(isInside), zeros, *value)};
}

FailureOr<Results> buildComplexGather(Call &call) {
  FailureOr<Value> self = call.tensor("self"), index = call.tensor("index");
  if (failed(self) || failed(index))
    return failure();
  ComplexCall in(call);
  FailureOr<int64_t> dim = call.dimArgument("dim", aten::typeOf(*self).getRank());
  SmallVector<OpFoldResult> sizes = sizesOf(call.builder, call.loc, *index);
  sizes.push_back(call.builder.getIndexAttr(2));
  FailureOr<Value> both = buildExpand(call.builder, call.loc, in.pairs.beside(*index), sizes);
  if (failed(dim) || failed(both))
    return failure();
  if (in.rankOf(*self) == 0)
    return call.error() << "a number is supported only as a tensor of one element";
  return one(call.buildOne("aten.gather", {{"self", {*self}}, {"index", {*both}}},
                           {call.integerAttr("dim", *dim)}));
}

FailureOr<Results> buildComplexPermute(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<SmallVector<int64_t>>> dims = call.integers("dims");
  if (failed(self) || failed(dims))
    return failure();
  int64_t rank = aten::typeOf(*self).getRank();
  for (int64_t &value : **dims) {
    FailureOr<int64_t> dim = call.dim(value, rank);
    if (failed(dim))
      return failure();
    value = *dim;
  }
  (*dims)->push_back(rank - 1);
  return one(
      call.buildOne("aten.permute", {{"self", {*self}}}, {call.integersAttr("dims", **dims)}));
}

FailureOr<Results> buildComplexTranspose(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  if (failed(self))
    return failure();
  if (ComplexCall::rankOf(*self) < 2)
    return Results{*self};
  return one(call.buildOne("aten.transpose", {{"self", {*self}}},
                           {call.integerAttr("dim0", 0), call.integerAttr("dim1", 1)}));
}

// The dim of the pairs is in front while rows and columns are the last two.
FailureOr<Results> buildComplexTriangle(Call &call) {
  FailureOr<Value> self = call.tensor("self");
  FailureOr<std::optional<int64_t>> diagonal = call.integer("diagonal");
  if (failed(self) || failed(diagonal))
    return failure();
  int64_t rank = ComplexCall::rankOf(*self);
  SmallVector<int64_t> ahead = {rank}, back = llvm::to_vector(llvm::seq<int64_t>(1, rank + 1));
  llvm::append_range(ahead, llvm::seq<int64_t>(0, rank));
  back.push_back(0);
  Value moved = aten::PermuteOp::create(call.builder, call.loc, *self, ahead);
  FailureOr<Value> part = call.buildOne(("aten." + packetOf(call)).str(), {{"self", {moved}}},
                                        {call.integerAttr("diagonal", diagonal->value_or(0))});
  if (failed(part))
    return failure();
  return Results{aten::PermuteOp::create(call.builder, call.loc, *part, back)};
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// The product as of matmul: a vector is a row or a column.
static Value multiplied(ComplexCall &in, Value z, Value w) {
  bool isRow = in.rankOf(z) == 1, isColumn = in.rankOf(w) == 1;
  Value product =
      in.pairs.matmul(isRow ? in.emit.unsqueeze(z, 0) : z, isColumn ? in.emit.unsqueeze(w, 1) : w);
  auto without = [&](int64_t dim) {
    product = aten::SqueezeOp::create(in.call.builder, in.call.loc, product, dim);
  };
  if (isColumn)
    without(in.rankOf(product) - 1);
  if (isRow)
    without(in.rankOf(product) - (isColumn ? 1 : 2));
  return product;
}

FailureOr<Results> buildComplexMatrixProduct(Call &call) {
  bool isVdot = packetOf(call) == "vdot";
  StringRef second = call.schema.arguments[1].name;
  if (!call.countsPairs) // vdot of real vectors
    return buildByName(call, "aten.matmul");
  ComplexCall in(call);
  FailureOr<Value> self = in.pair("self"), other = in.pair(second);
  if (failed(self) || failed(other) || failed(in.checkFactors(*self, *other)))
    return failure();
  return Results{multiplied(in, isVdot ? in.pairs.conj(*self) : *self, *other)};
}

// beta * self + alpha * mat1 mat2
FailureOr<Results> buildComplexAddMatrixProduct(Call &call) {
  ComplexCall in(call);
  bool isBatch = packetOf(call) == "baddbmm";
  FailureOr<Value> self = in.pair("self"), first = in.pair(isBatch ? "batch1" : "mat1"),
                   second = in.pair(isBatch ? "batch2" : "mat2");
  if (failed(self) || failed(first) || failed(second) || failed(in.checkFactors(*first, *second)))
    return failure();
  auto times = [&](Value z, StringRef name) -> FailureOr<Value> {
    if (asReal(*call.find(name)) == 1.0)
      return z;
    FailureOr<ComplexOperand> factor = in.operand(name);
    if (failed(factor))
      return failure();
    return in.product({z, true}, *factor);
  };
  FailureOr<Value> product = times(multiplied(in, *first, *second), "alpha");
  // A factor of 0 means that self is not looked at.
  if (failed(product) || asReal(*call.find("beta")) == 0.0)
    return one(product);
  FailureOr<Value> added = times(*self, "beta");
  if (failed(added) || failed(in.checkBroadcast({{*added, true}, {*product, true}})))
    return failure();
  return Results{in.emit.add(*added, *product)};
}

FailureOr<Results> buildComplexLinear(Call &call) {
  ComplexCall in(call);
  FailureOr<Value> input = in.pair("input"), weight = in.pair("weight"), bias = in.pair("bias");
  if (failed(input) || failed(weight) || failed(bias))
    return failure();
  Value matrix = *weight;
  if (in.rankOf(matrix) == 2)
    matrix = aten::TransposeOp::create(call.builder, call.loc, matrix, 0, 1);
  if (failed(in.checkFactors(*input, matrix)))
    return failure();
  Value product = multiplied(in, *input, matrix);
  if (*bias && failed(in.checkBroadcast({{product, true}, {*bias, true}})))
    return failure();
  return Results{*bias ? in.emit.add(product, *bias) : product};
}

} // namespace shardc::torch_export
