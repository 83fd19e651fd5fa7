// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/BuiltSizes.h"

#include "dialects/aten/Aten.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shardc::aten {

SmallVector<Dim> BuiltSizes::sizesOf(Value tensor) {
  SmallVector<Dim> sizes;
  for (auto [dim, size] : llvm::enumerate(shapeOf(tensor))) {
    sizes.push_back(size);
    if (!ShapedType::isDynamic(size))
      continue;
    sizes.back() = Dim::entry(entries.size());
    entries.push_back({Value(), tensor, static_cast<int64_t>(dim)});
  }
  return sizes;
}

Dim BuiltSizes::valueOf(Value index) { return of(index); }

Dim BuiltSizes::of(OpFoldResult size) {
  if (std::optional<int64_t> constant = getConstantIntValue(size))
    return *constant;
  entries.push_back({cast<Value>(size), Value(), 0});
  return Dim::entry(entries.size() - 1);
}

OpFoldResult BuiltSizes::get(Dim dim) {
  if (dim.number())
    return builder.getIndexAttr(*dim.number());
  if (!dim.isKnown())
    return {};
  Entry &entry = entries[*dim.entry()];
  if (!entry.value)
    entry.value = SymSizeOp::create(builder, loc, builder.getIndexType(), entry.tensor, entry.dim);
  return entry.value;
}

Value BuiltSizes::value(Dim dim) {
  if (dim.number())
    return arith::ConstantIndexOp::create(builder, loc, *dim.number());
  return cast<Value>(get(dim));
}

Dim BuiltSizes::compute(Operation operation, Dim a, Dim b) {
  Value lhs = value(a), rhs = value(b);
  auto build = [&]() -> Value {
    switch (operation) {
    case Operation::Add:
      return arith::AddIOp::create(builder, loc, lhs, rhs);
    case Operation::Sub:
      return arith::SubIOp::create(builder, loc, lhs, rhs);
    case Operation::Mul:
      return arith::MulIOp::create(builder, loc, lhs, rhs);
    case Operation::CeilDiv:
      return arith::CeilDivSIOp::create(builder, loc, lhs, rhs);
    case Operation::Min:
      return arith::MinSIOp::create(builder, loc, lhs, rhs);
    case Operation::Max:
    case Operation::AsSize: // `b` is 0
      return arith::MaxSIOp::create(builder, loc, lhs, rhs);
    case Operation::FromEnd:
      break;
    }
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    Value negative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, lhs, zero);
    Value moved = arith::AddIOp::create(builder, loc, lhs, rhs);
    return arith::SelectOp::create(builder, loc, negative, moved, lhs);
  };
  return of(build());
}

LogicalResult reifyShapes(mlir::Operation *op, OpBuilder &builder,
                          ReifiedRankedShapedTypeDims &shapes) {
  BuiltSizes sizes(builder, op->getLoc());
  auto results = cast<ResultSizesOpInterface>(op).inferResultSizes(sizes);
  if (failed(results))
    return failure();
  for (auto [result, known] : llvm::zip_equal(op->getResults(), *results)) {
    SmallVector<OpFoldResult> &shape = shapes.emplace_back();
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    // What the type says is an attribute, and the rest are values: the interface wants it so.
    for (auto [size, dim] : llvm::zip_equal(type.getShape(), known)) {
      if (!ShapedType::isDynamic(size))
        shape.push_back(builder.getIndexAttr(size));
      else
        shape.push_back(dim.isKnown() ? OpFoldResult(sizes.value(dim)) : OpFoldResult());
    }
  }
  return success();
}

} // namespace shardc::aten
