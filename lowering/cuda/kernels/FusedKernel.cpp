// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/FusedKernel.h"

#include "lowering/linalg/Destinations.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shardc::cuda {

bool isPointwise(linalg::LinalgOp op) { return op.getNumReductionLoops() == 0; }

/// Named ops become generic ones, except fills; each destination gets a value that an op computes;
/// sizes of tensors are those of the memory that they are read from.
LogicalResult FusedKernel::normalize() {
  IRRewriter rewriter(function.getContext());
  bool valid = true;
  for (auto op : llvm::make_early_inc_range(function.getOps<linalg::LinalgOp>())) {
    if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()))
      continue;
    rewriter.setInsertionPoint(op);
    if (failed(linalg::generalizeNamedOp(rewriter, op))) {
      op.emitOpError("has no generic form");
      valid = false;
    }
  }
  separateDestinations(function);
  function.walk([&](tensor::DimOp dim) {
    auto read = dim.getSource().getDefiningOp<bufferization::ToTensorOp>();
    if (!read) {
      dim.emitOpError("asks for a size that no argument of the kernel has");
      valid = false;
      return;
    }
    rewriter.setInsertionPoint(dim);
    rewriter.replaceOpWithNewOp<memref::DimOp>(dim, read.getBuffer(), dim.getIndex());
  });
  return success(valid);
}

void FusedKernel::collect() {
  for (Operation &op : function.getBody().front()) {
    if (auto output = dyn_cast<bufferization::MaterializeInDestinationOp>(op))
      destinations[output.getSource()].push_back(output.getDest());
    if (auto check = dyn_cast<exec::CheckRangeOp>(op))
      checks[check.getIndices()].push_back(check);
  }
  for (auto op : function.getOps<linalg::LinalgOp>()) {
    if (isa<linalg::FillOp>(op.getOperation()) && !destinations.contains(op->getResult(0)))
      constants.insert(op->getResult(0));
    else
      ops.push_back(op);
  }
}

FailureOr<FusedKernel> FusedKernel::analyze(func::FuncOp kernel, const target::Limits &limits) {
  FusedKernel result;
  result.function = kernel;
  result.limits = limits;
  if (failed(result.normalize()))
    return failure();
  FailureOr<tiling::TileSpace> space = tiling::TileSpace::analyze(kernel, limits);
  if (failed(space))
    return failure();
  result.space = std::move(*space);
  result.collect();
  return result;
}

ArrayRef<Value> FusedKernel::destinationsOf(Value tensor) const {
  auto it = destinations.find(tensor);
  return it == destinations.end() ? ArrayRef<Value>() : ArrayRef<Value>(it->second);
}

ArrayRef<exec::CheckRangeOp> FusedKernel::checksOf(Value tensor) const {
  auto it = checks.find(tensor);
  return it == checks.end() ? ArrayRef<exec::CheckRangeOp>()
                            : ArrayRef<exec::CheckRangeOp>(it->second);
}

Value FusedKernel::placeOf(Value tensor) const {
  if (auto read = tensor.getDefiningOp<bufferization::ToTensorOp>())
    return read.getBuffer();
  ArrayRef<Value> wanted = destinationsOf(tensor);
  return wanted.empty() ? temporaries.lookup(tensor) : wanted.front();
}

Value FusedKernel::makePlace(OpBuilder &host, Value tensor) {
  if (Value place = placeOf(tensor))
    return place;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  for (OpFoldResult size : sizesOf(tensor)) {
    std::optional<int64_t> constant = getConstantIntValue(size);
    shape.push_back(constant ? *constant : ShapedType::kDynamic);
    if (!constant)
      dynamic.push_back(cast<Value>(size));
  }
  return temporaries[tensor] = memref::AllocOp::create(
             host, getLoc(), MemRefType::get(shape, type.getElementType()), dynamic);
}

OpFoldResult FusedKernel::extentOf(unsigned dim) {
  auto [it, inserted] = extents.try_emplace(dim);
  if (!inserted)
    return it->second;
  OpBuilder builder(function.getContext());
  int64_t extent = space.extent(dim);
  if (!ShapedType::isDynamic(extent))
    return it->second = builder.getIndexAttr(extent);
  auto [source, position] = space.extentSource(dim);
  if (auto empty = source.getDefiningOp<tensor::EmptyOp>()) {
    OpFoldResult size = empty.getMixedSizes()[position];
    return it->second = size;
  }
  if (auto definition = source.getDefiningOp<bufferization::ToTensorOp>())
    source = definition.getBuffer();
  builder.setInsertionPointAfterValue(source);
  return it->second = memref::DimOp::create(builder, getLoc(), source, position).getResult();
}

SmallVector<OpFoldResult> FusedKernel::sizesOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Builder builder(function.getContext());
  SmallVector<OpFoldResult> sizes;
  for (auto [size, dim] : llvm::zip_equal(type.getShape(), space.dimsOf(tensor)))
    sizes.push_back(!ShapedType::isDynamic(size) ? OpFoldResult(builder.getIndexAttr(size))
                    : dim                        ? extentOf(*dim)
                                                 : OpFoldResult(builder.getIndexAttr(1)));
  return sizes;
}

SmallVector<OpFoldResult> FusedKernel::loopExtents(linalg::LinalgOp op) {
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : space.loopsOf(op))
    sizes.push_back(extentOf(dim));
  return sizes;
}

LogicalResult FusedKernel::eraseTensors() {
  SmallVector<Operation *> old;
  for (Operation &op : function.getBody().front())
    if (isa<linalg::LinalgOp, tensor::EmptyOp, bufferization::ToTensorOp, exec::CheckRangeOp,
            bufferization::MaterializeInDestinationOp>(op))
      old.push_back(&op);
  for (Operation *op : llvm::reverse(old)) {
    if (!op->use_empty())
      return op->emitOpError("is still used after its kernel was divided into launches");
    op->erase();
  }
  return success();
}

} // namespace shardc::cuda
