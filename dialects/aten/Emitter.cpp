// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace shardc;

void shardc::splitMixed(ArrayRef<OpFoldResult> mixed, SmallVectorImpl<int64_t> &fixed,
                        SmallVectorImpl<Value> &dynamic) {
  for (OpFoldResult size : mixed) {
    if (std::optional<int64_t> value = getConstantIntValue(size)) {
      fixed.push_back(*value);
      continue;
    }
    fixed.push_back(ShapedType::kDynamic);
    dynamic.push_back(cast<Value>(size));
  }
}

/// The static part of a bound, and its index operand if it has one.
static std::pair<int64_t, Value> splitBound(OpFoldResult bound) {
  if (std::optional<int64_t> value = getConstantIntValue(bound))
    return {*value, Value()};
  return {ShapedType::kDynamic, cast<Value>(bound)};
}

Value Emitter::scalar(double value, Type elementType) {
  if (isa<IntegerType>(elementType))
    return integer(static_cast<int64_t>(value), elementType);
  auto type = RankedTensorType::get({}, elementType);
  auto attr = DenseElementsAttr::get(type, builder.getFloatAttr(elementType, value));
  return aten::ConstantOp::create(builder, loc, type, attr);
}

Value Emitter::integer(int64_t value, Type elementType) {
  if (isa<FloatType>(elementType))
    return scalar(static_cast<double>(value), elementType);
  auto type = RankedTensorType::get({}, elementType);
  auto attr = DenseElementsAttr::get(type, Attribute(builder.getIntegerAttr(elementType, value)));
  return aten::ConstantOp::create(builder, loc, type, attr);
}

Value Emitter::ofIndex(Value index, Type elementType) {
  if (std::optional<int64_t> value = getConstantIntValue(index))
    return integer(*value, elementType);
  Value one = range(index, arith::ConstantIndexOp::create(builder, loc, 1));
  return cast(view(one, {}), elementType);
}

Value Emitter::full(ArrayRef<OpFoldResult> sizes, Value fill) {
  SmallVector<int64_t> fixed;
  SmallVector<Value> dynamic;
  splitMixed(sizes, fixed, dynamic);
  return aten::ExpandOp::create(builder, loc, fill, fixed, dynamic);
}

Value Emitter::zeros(ArrayRef<OpFoldResult> sizes, Type elementType) {
  return full(sizes, integer(0, elementType));
}

Value Emitter::range(Value start, Value length, int64_t step, Type elementType) {
  Value stepValue = arith::ConstantIndexOp::create(builder, loc, step);
  Value span = builder.createOrFold<arith::MulIOp>(loc, length, stepValue);
  Value end = builder.createOrFold<arith::AddIOp>(loc, start, span);
  auto [fixedStart, dynamicStart] = splitBound(start);
  auto [fixedEnd, dynamicEnd] = splitBound(end);
  std::optional<int64_t> count = getConstantIntValue(length);
  Type type = elementType ? elementType : builder.getI64Type();
  return aten::ArangeOp::create(builder, loc,
                                RankedTensorType::get({count.value_or(ShapedType::kDynamic)}, type),
                                fixedStart, dynamicStart, fixedEnd, dynamicEnd, step, type);
}

Value Emitter::add(Value x, Value y) {
  return aten::AddOp::create(builder, loc, x, y, APFloat(1.0));
}
Value Emitter::sub(Value x, Value y) {
  return aten::SubOp::create(builder, loc, x, y, APFloat(1.0));
}
Value Emitter::div(Value x, Value y) {
  return aten::DivOp::create(builder, loc, x, y, /*rounding_mode=*/StringAttr());
}
Value Emitter::where(Value condition, Value x, Value y) {
  return aten::WhereOp::create(builder, loc, condition, x, y);
}

Value Emitter::cast(Value x, Type elementType) {
  if (aten::elementTypeOf(x) == elementType)
    return x;
  return aten::ToCopyOp::create(builder, loc, x, elementType);
}

Value Emitter::sum(Value x, ArrayRef<int64_t> dims, bool keepdim) {
  // Sums of integers are i64 unless the type is named.
  return aten::SumOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(dims), keepdim,
                             TypeAttr::get(aten::elementTypeOf(x)));
}
Value Emitter::amax(Value x, ArrayRef<int64_t> dims, bool keepdim) {
  return aten::AmaxOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(dims), keepdim);
}
Value Emitter::amin(Value x, ArrayRef<int64_t> dims, bool keepdim) {
  return aten::AminOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(dims), keepdim);
}

Value Emitter::view(Value x, ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> fixed;
  SmallVector<Value> dynamic;
  splitMixed(sizes, fixed, dynamic);
  return aten::ViewOp::create(builder, loc, x, fixed, dynamic);
}

Value Emitter::unsqueeze(Value x, int64_t dim) {
  return aten::UnsqueezeOp::create(builder, loc, x, dim);
}

Value Emitter::cat(ValueRange parts, int64_t dim) {
  return aten::CatOp::create(builder, loc, parts, dim);
}

Value Emitter::slice(Value x, int64_t dim, OpFoldResult start, OpFoldResult end, int64_t step) {
  auto [fixedStart, dynamicStart] = splitBound(start);
  auto [fixedEnd, dynamicEnd] = splitBound(end);
  return aten::SliceOp::create(builder, loc, x, dim, fixedStart, dynamicStart, fixedEnd, dynamicEnd,
                               step);
}

Type Emitter::accumulator(Type elementType) {
  auto type = dyn_cast<FloatType>(elementType);
  if (type && type.getWidth() < 32)
    return Float32Type::get(elementType.getContext());
  return elementType;
}
