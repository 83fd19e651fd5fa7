// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/Formula.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;

namespace shardc::torch_export {

SmallVector<Expr> Formula::tensors(StringRef name) {
  SmallVector<Expr> list;
  for (Value value : take(call.tensors(name)))
    list.push_back(of(value));
  return list;
}

Expr Formula::tensorOrNumber(StringRef name, Type elementType) {
  const Argument *argument = call.find(name);
  if (argument && !std::holds_alternative<TensorArg>(*argument) && elementType)
    return of(take(call.scalar(*argument, elementType)));
  return tensor(name);
}

StringRef Formula::text(StringRef name) {
  auto *text = std::get_if<std::string_view>(call.find(name));
  return text ? StringRef(*text) : StringRef();
}

SmallVector<int64_t> Formula::dims(StringRef name, int64_t rank) {
  SmallVector<int64_t> dims;
  std::optional<SmallVector<int64_t>> given = take(call.integers(name));
  if (!given || given->empty())
    return llvm::to_vector(llvm::seq<int64_t>(rank));
  if (rank > 0)
    for (int64_t value : *given)
      dims.push_back(take(call.dim(value, rank)));
  return dims;
}

Expr Formula::floats(StringRef name) {
  Type type = call.resultElementType();
  if (!isa_and_present<FloatType>(type))
    type = call.builder.getF32Type();
  Expr x = tensorOrNumber(name, type);
  return x ? shardc::cast(x, Emitter::accumulator(type)) : x;
}

OpFoldResult Formula::product(ArrayRef<OpFoldResult> sizes) {
  OpFoldResult count = one();
  for (OpFoldResult size : sizes)
    count = multiplySizes(call.builder, call.loc, count, size);
  return count;
}

Expr Formula::range(OpFoldResult length) {
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(call.builder, call.loc, size);
  };
  return of(emit.range(value(call.builder.getIndexAttr(0)), value(length)));
}

Expr Formula::number(OpFoldResult size, Type elementType) {
  if (std::optional<int64_t> fixed = getConstantIntValue(size))
    return of(isa<FloatType>(elementType) ? emit.scalar(static_cast<double>(*fixed), elementType)
                                          : emit.integer(*fixed, elementType));
  Expr whole = of(emit.ofIndex(cast<Value>(size), call.builder.getI64Type()));
  return shardc::cast(whole, elementType);
}

Expr Formula::op(StringRef name, ArrayRef<aten::NamedOperand> operands,
                 ArrayRef<NamedAttribute> attributes) {
  FailureOr<Value> value = call.buildOne(name, operands, attributes);
  isBad |= mlir::failed(value);
  // The formula may go on, for nothing.
  return of(succeeded(value) ? *value : emit.scalar(0, call.builder.getF32Type()));
}

Expr Formula::reduce(StringRef name, Expr x, ArrayRef<int64_t> dims, bool keepdim) {
  SmallVector<NamedAttribute> attributes;
  if (x.rank() > 0)
    attributes.push_back(call.integersAttr("dim", dims));
  if (keepdim)
    attributes.push_back(call.builder.getNamedAttr("keepdim", call.builder.getUnitAttr()));
  return op(name, {{"self", {x.value}}}, attributes);
}

Expr Formula::slice(Expr x, int64_t dim, OpFoldResult start, OpFoldResult end) {
  return of(take(buildSlice(call.builder, call.loc, x.value, dim, start, end)));
}

Expr Formula::detached(Expr x) {
  auto alias = aten::AliasOp::create(call.builder, call.loc, x.value);
  alias.setDetached(true);
  return of(alias);
}

Expr Formula::permute(Expr x, ArrayRef<int64_t> order) {
  return of(aten::PermuteOp::create(call.builder, call.loc, x.value, order));
}

Expr Formula::squeeze(Expr x, int64_t dim) {
  return of(aten::SqueezeOp::create(call.builder, call.loc, x.value, ArrayRef<int64_t>{dim}));
}

FailureOr<Results> Formula::result(Expr x) {
  if (isBad || !x)
    return failure();
  Type type = call.resultElementType();
  return Results{type ? emit.cast(x.value, type) : x.value};
}

} // namespace shardc::torch_export
