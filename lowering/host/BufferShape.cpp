// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/EmitPattern.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace shardc::host {

Value valueOf(OpBuilder &b, Location loc, OpFoldResult number) {
  if (auto value = dyn_cast<Value>(number))
    return value;
  return constantInt(b, loc, *getConstantIntValue(number));
}

FailureOr<BufferShape> BufferShape::of(Value memref, ConversionPatternRewriter &b) {
  BufferShape shape;
  auto type = cast<MemRefType>(memref.getType());
  // What has no elements is passed as dense (exec::kernelArgumentType), whatever a view calls it.
  bool isEmpty = llvm::is_contained(type.getShape(), 0);
  if (isEmpty)
    type = MemRefType::get(type.getShape(), type.getElementType());
  int64_t offset;
  if (failed(type.getStridesAndOffset(shape.strides, offset)))
    return failure();
  shape.sizes = llvm::to_vector(type.getShape());
  Operation *definition = memref.getDefiningOp();
  auto take = [&](ValueRange values, SmallVector<Value> &to) {
    for (Value value : values)
      to.push_back(b.getRemappedValue(value));
  };
  if (auto view = dyn_cast_or_null<memref::ReinterpretCastOp>(definition)) {
    take(view.getSizes(), shape.dynamicSizes);
    // A dense view may write constants where its type calls strides dynamic: those of dims of
    // size 1.
    if (type.getLayout().isIdentity())
      shape.fillDenseStrides(b, memref.getLoc());
    else
      take(view.getStrides(), shape.dynamicStrides);
  } else if (auto alloc = dyn_cast_or_null<exec::AllocOp>(definition)) {
    take(alloc.getSizes(), shape.dynamicSizes);
    shape.fillDenseStrides(b, memref.getLoc());
  } else if (auto cast = dyn_cast_or_null<memref::CastOp>(definition)) {
    // What folding found to be constant is called dynamic again, as the kernel has it.
    FailureOr<BufferShape> source = of(cast.getSource(), b);
    if (failed(source))
      return failure();
    for (auto [dim, size] : llvm::enumerate(shape.sizes)) {
      auto number = static_cast<unsigned>(dim);
      if (ShapedType::isDynamic(size))
        shape.dynamicSizes.push_back(valueOf(b, memref.getLoc(), source->size(b, number)));
      if (ShapedType::isDynamic(shape.strides[dim]))
        shape.dynamicStrides.push_back(valueOf(b, memref.getLoc(), source->stride(b, number)));
    }
  } else if (type.hasStaticShape()) {
    // Of a type without elements, MLIR calls strides dynamic that are products of its sizes.
    shape.fillDenseStrides(b, memref.getLoc());
  }
  if (shape.dynamicSizes.size() != static_cast<size_t>(type.getNumDynamicDims()) ||
      static_cast<int64_t>(shape.dynamicStrides.size()) !=
          llvm::count_if(shape.strides, ShapedType::isDynamic))
    return failure();
  return shape;
}

OpFoldResult BufferShape::pick(OpBuilder &b, ArrayRef<int64_t> known, ArrayRef<Value> dynamic,
                               unsigned dim) {
  if (!ShapedType::isDynamic(known[dim]))
    return b.getI64IntegerAttr(known[dim]);
  return dynamic[llvm::count_if(known.take_front(dim), ShapedType::isDynamic)];
}

void BufferShape::fillDenseStrides(OpBuilder &b, Location loc) {
  SmallVector<Value> values(sizes.size());
  Value stride = constantInt(b, loc, 1);
  for (size_t dim = sizes.size(); dim-- > 0;) {
    values[dim] = stride;
    stride = LLVM::MulOp::create(b, loc, stride, valueOf(b, loc, size(b, dim)));
  }
  for (auto [known, value] : llvm::zip_equal(strides, values))
    if (ShapedType::isDynamic(known))
      dynamicStrides.push_back(value);
}

} // namespace shardc::host
