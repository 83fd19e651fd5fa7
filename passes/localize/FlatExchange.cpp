// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/FlatExchange.h"

#include "dialects/aten/Aten.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Value shardc::unitOf(LocalIndices &indices, ArrayRef<OpFoldResult> sizes,
                     ArrayRef<int64_t> exchanged) {
  Value product = indices.constant(1);
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (llvm::is_contained(exchanged, static_cast<int64_t>(dim)))
      continue;
    std::optional<int64_t> fixed = getConstantIntValue(size);
    product = indices.mul(product, fixed ? indices.constant(*fixed) : cast<Value>(size));
  }
  return product;
}

/// The `extents` of a collective on one flat tensor: numbers, and operands for those that are none.
static ArrayAttr extentsOf(OpBuilder &builder, ArrayRef<Value> lengths,
                           SmallVectorImpl<Value> &operands) {
  SmallVector<int64_t> fixed;
  for (Value length : lengths) {
    fixed.push_back(getConstantIntValue(length).value_or(kDynamic));
    if (fixed.back() == kDynamic)
      operands.push_back(length);
  }
  return builder.getArrayAttr(builder.getDenseI64ArrayAttr(fixed));
}

Value shardc::emitFlatExchange(LocalIndices &indices, ArrayRef<unsigned> axes, Value sent,
                               ArrayRef<Value> leaving, ArrayRef<Value> arriving) {
  OpBuilder &builder = indices.getBuilder();
  SmallVector<StringAttr> names;
  for (unsigned axis : axes)
    names.push_back(builder.getStringAttr(indices.getMesh().getValue().axes[axis].name));
  auto group = AxesAttr::get(builder.getContext(), indices.getMesh(), names);
  int64_t length = getConstantIntValue(indices.sum(arriving)).value_or(ShapedType::kDynamic);
  auto type = RankedTensorType::get({length}, aten::elementTypeOf(sent));
  SmallVector<Value> operands;
  ArrayAttr splits = extentsOf(builder, leaving, operands),
            concats = extentsOf(builder, arriving, operands);
  return AllToAllOp::create(builder, indices.getLoc(), TypeRange{type}, ValueRange{sent}, operands,
                            group, builder.getDenseI64ArrayAttr({0}),
                            builder.getDenseI64ArrayAttr({0}), splits, concats)
      .getResult(0);
}
