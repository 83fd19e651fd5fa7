// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/torch_export/import/SliceBuilders.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace shardc::torch_export {
namespace {

using Attributes = SmallVector<NamedAttribute, 4>;

FailureOr<Value> buildOne(OpBuilder &builder, Location loc, StringRef name,
                          ArrayRef<aten::NamedOperand> operands, ArrayRef<NamedAttribute> attrs) {
  FailureOr<Operation *> op = aten::buildOp(builder, loc, name, operands, attrs);
  if (failed(op))
    return failure();
  return (*op)->getResult(0);
}

FailureOr<Value> buildSized(OpBuilder &builder, Location loc, StringRef name, Value tensor,
                            ArrayRef<OpFoldResult> sizes) {
  SmallVector<Value> dynamic;
  SmallVector<int64_t> fixed;
  dispatchIndexOpFoldResults(sizes, dynamic, fixed);
  return buildOne(builder, loc, name, {{"self", {tensor}}, {"size", dynamic}},
                  {builder.getNamedAttr("static_size", builder.getDenseI64ArrayAttr(fixed))});
}

// `static_NAME`, and the operand NAME where the value is not known.
void addIndex(OpBuilder &builder, StringRef name, OpFoldResult value,
              SmallVectorImpl<aten::NamedOperand> &operands, Attributes &attributes) {
  std::optional<int64_t> constant = getConstantIntValue(value);
  if (!constant)
    operands.push_back({name, {cast<Value>(value)}});
  attributes.push_back(
      builder.getNamedAttr(("static_" + name).str(),
                           builder.getI64IntegerAttr(constant.value_or(ShapedType::kDynamic))));
}

} // namespace

OpFoldResult addSizes(OpBuilder &builder, Location loc, OpFoldResult lhs, OpFoldResult rhs) {
  std::optional<int64_t> left = getConstantIntValue(lhs), right = getConstantIntValue(rhs);
  if (left && right)
    return builder.getIndexAttr(*left + *right);
  return arith::AddIOp::create(builder, loc, getValueOrCreateConstantIndexOp(builder, loc, lhs),
                               getValueOrCreateConstantIndexOp(builder, loc, rhs))
      .getResult();
}

OpFoldResult multiplySizes(OpBuilder &builder, Location loc, OpFoldResult lhs, OpFoldResult rhs) {
  std::optional<int64_t> left = getConstantIntValue(lhs), right = getConstantIntValue(rhs);
  if (left && right)
    return builder.getIndexAttr(*left * *right);
  return arith::MulIOp::create(builder, loc, getValueOrCreateConstantIndexOp(builder, loc, lhs),
                               getValueOrCreateConstantIndexOp(builder, loc, rhs))
      .getResult();
}

SmallVector<OpFoldResult> sizesOf(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    if (!type.isDynamicDim(d))
      sizes.push_back(builder.getIndexAttr(type.getDimSize(d)));
    else
      sizes.push_back(
          aten::SymSizeOp::create(builder, loc, builder.getIndexType(), tensor, uint64_t(d))
              .getResult());
  }
  return sizes;
}

FailureOr<Value> buildView(OpBuilder &builder, Location loc, Value tensor,
                           ArrayRef<OpFoldResult> sizes) {
  return buildSized(builder, loc, "aten.view", tensor, sizes);
}

FailureOr<Value> buildExpand(OpBuilder &builder, Location loc, Value tensor,
                             ArrayRef<OpFoldResult> sizes) {
  return buildSized(builder, loc, "aten.expand", tensor, sizes);
}

FailureOr<Value> buildSlice(OpBuilder &builder, Location loc, Value tensor, int64_t dim,
                            OpFoldResult start, OpFoldResult end) {
  SmallVector<aten::NamedOperand> operands = {{"self", {tensor}}};
  Attributes attributes = {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim))};
  addIndex(builder, "start", start, operands, attributes);
  if (end)
    addIndex(builder, "end", end, operands, attributes);
  return buildOne(builder, loc, "aten.slice", operands, attributes);
}

FailureOr<Value> buildReplaceSlice(OpBuilder &builder, Location loc, Value tensor, int64_t dim,
                                   OpFoldResult start, Value part) {
  OpFoldResult end = addSizes(builder, loc, start, sizesOf(builder, loc, part)[dim]);
  OpFoldResult size = sizesOf(builder, loc, tensor)[dim];
  SmallVector<Value> parts;
  if (getConstantIntValue(start) != 0) {
    FailureOr<Value> before = buildSlice(builder, loc, tensor, dim, builder.getIndexAttr(0), start);
    if (failed(before))
      return failure();
    parts.push_back(*before);
  }
  parts.push_back(part);
  if (!getConstantIntValue(end) || getConstantIntValue(end) != getConstantIntValue(size)) {
    FailureOr<Value> after = buildSlice(builder, loc, tensor, dim, end, {});
    if (failed(after))
      return failure();
    parts.push_back(*after);
  }
  if (parts.size() == 1)
    return buildOverwritten(builder, loc, tensor, part);
  return buildOne(builder, loc, "aten.cat", {{"tensors", parts}},
                  {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim))});
}

// The elements of `part` with zeros between and around them are chosen by position.
FailureOr<Value> buildReplaceSteps(OpBuilder &builder, Location loc, Value tensor, int64_t dim,
                                   int64_t start, int64_t step, Value part) {
  Emitter emit(builder, loc);
  int64_t size = aten::shapeOf(tensor)[dim], count = aten::shapeOf(part)[dim];
  auto pad = [&](Value x, int64_t along, int64_t before, int64_t after) -> Value {
    SmallVector<int64_t> widths(2 * (aten::typeOf(x).getRank() - along), 0);
    widths[widths.size() - 2] = before;
    widths.back() = after;
    return aten::ConstantPadNdOp::create(builder, loc, x, widths, APFloat(0.0));
  };
  SmallVector<OpFoldResult> sizes = sizesOf(builder, loc, part);
  sizes[dim] = builder.getIndexAttr(count * step);
  Value spread = emit.view(pad(emit.unsqueeze(part, dim + 1), dim + 1, 0, step - 1), sizes);
  spread = pad(spread, dim, start, size - start - count * step);
  SmallVector<OpFoldResult> along(aten::typeOf(tensor).getRank(), builder.getIndexAttr(1));
  along[dim] = builder.getIndexAttr(size);
  Type i64 = builder.getI64Type();
  auto index = [&](int64_t x) {
    return getValueOrCreateConstantIndexOp(builder, loc, builder.getIndexAttr(x));
  };
  Value place = emit.view(emit.range(index(-start), index(size), /*step=*/1, i64), along);
  Value isStep = emit.binary<aten::EqOp>(
      emit.binary<aten::RemainderOp>(place, emit.integer(step, i64)), emit.integer(0, i64));
  Value isInside = emit.binary<aten::LogicalAndOp>(
      emit.binary<aten::GeOp>(place, emit.integer(0, i64)),
      emit.binary<aten::LtOp>(place, emit.integer(count * step, i64)));
  return emit.where(emit.binary<aten::LogicalAndOp>(isStep, isInside), spread, tensor);
}

FailureOr<Value> buildOverwritten(OpBuilder &builder, Location loc, Value tensor, Value source) {
  // What depends on the tensor is of interest to a gradient only.
  if (isa<FloatType>(aten::elementTypeOf(tensor)) &&
      !isa_and_nonnull<aten::ConstantOp>(tensor.getDefiningOp()))
    return buildOne(builder, loc, "aten.copy", {{"self", {tensor}}, {"src", {source}}}, {});
  return buildOne(builder, loc, "aten.clone", {{"self", {source}}}, {});
}

FailureOr<Value> buildCast(OpBuilder &builder, Location loc, Value tensor, Type elementType) {
  if (aten::elementTypeOf(tensor) == elementType)
    return tensor;
  return buildOne(builder, loc, "aten.to_copy", {{"self", {tensor}}},
                  {builder.getNamedAttr("dtype", TypeAttr::get(elementType))});
}

FailureOr<Value> buildUnsqueeze(OpBuilder &builder, Location loc, Value tensor, int64_t dim) {
  return buildOne(builder, loc, "aten.unsqueeze", {{"self", {tensor}}},
                  {builder.getNamedAttr("dim", builder.getI64IntegerAttr(dim))});
}

} // namespace shardc::torch_export
