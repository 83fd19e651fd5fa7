// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/linalg/Destinations.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace shardc;

namespace {

/// From the `tensor.empty` or the memory that a value begins with: sizes of values between are no
/// longer asked for.
SmallVector<OpFoldResult> sizesOf(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value origin = tensor;
  while (auto op = origin.getDefiningOp<linalg::LinalgOp>())
    origin = op.getTiedOpOperand(cast<OpResult>(origin))->get();
  if (auto empty = origin.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  auto read = origin.getDefiningOp<bufferization::ToTensorOp>();
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      sizes.push_back(builder.getIndexAttr(size));
    else if (read)
      sizes.push_back(memref::DimOp::create(builder, loc, read.getBuffer(), dim).getResult());
    else
      sizes.push_back(tensor::DimOp::create(builder, loc, origin, dim).getResult());
  }
  return sizes;
}

Value copyOf(OpBuilder &builder, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value empty =
      tensor::EmptyOp::create(builder, loc, sizesOf(builder, loc, tensor), type.getElementType());
  SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, empty.getType(), tensor, empty, maps, iterators,
                                   [](OpBuilder &b, Location l, ValueRange args) {
                                     linalg::YieldOp::create(b, l, args[0]);
                                   })
      .getResult(0);
}

} // namespace

void shardc::separateDestinations(func::FuncOp kernel) {
  OpBuilder builder(kernel.getContext());
  auto isComputed = [](Value value) { return value.getDefiningOp<linalg::LinalgOp>() != nullptr; };
  DenseSet<Value> taken;
  for (auto op :
       llvm::make_early_inc_range(kernel.getOps<bufferization::MaterializeInDestinationOp>())) {
    Value source = op.getSource();
    if (isComputed(source) && taken.insert(source).second)
      continue;
    builder.setInsertionPoint(op);
    op.getSourceMutable().assign(copyOf(builder, op.getLoc(), source));
  }
  for (auto op : llvm::make_early_inc_range(kernel.getOps<linalg::LinalgOp>()))
    for (OpOperand &init : op.getDpsInitsMutable()) {
      if (!op.payloadUsesValueFromOperand(&init) ||
          (isComputed(init.get()) && init.get().hasOneUse()))
        continue;
      builder.setInsertionPoint(op);
      init.set(copyOf(builder, op.getLoc(), init.get()));
    }
}
