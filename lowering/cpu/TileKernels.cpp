// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fused kernels: from linalg on tensors to parallel loops over tiles in memory. Tiling and
// bufferization are one step, because the tile is what decides how large a buffer is: each value of
// the kernel gets exactly one place, a tile of an argument or a temporary of the size of a tile.

#include "dialects/exec/Exec.h"
#include "lowering/cpu/Passes.h"
#include "lowering/cpu/RangeChecks.h"
#include "lowering/linalg/Destinations.h"
#include "lowering/target/Target.h"
#include "lowering/tiling/TileSpace.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace shardc::cpu {
#define GEN_PASS_DEF_CPUTILEKERNELS
#include "lowering/cpu/Passes.h.inc"
} // namespace shardc::cpu

using namespace mlir;
using namespace shardc;
using namespace shardc::cpu;
using namespace shardc::tiling;

namespace {

class KernelTiler {
public:
  KernelTiler(func::FuncOp kernel, const TileSpace &space, const target::Limits &limits)
      : kernel(kernel), space(space), limits(limits), builder(kernel.getContext()),
        loc(kernel.getLoc()) {}

  LogicalResult run();
  unsigned temporaryCount() const { return temporaries; }

private:
  /// Offsets and sizes of the current tile along dims of the kernel.
  OpFoldResult offsetOf(unsigned dim);
  OpFoldResult sizeOf(unsigned dim);
  OpFoldResult extentOf(unsigned dim);

  void makeLoop();
  void divideIntoCoordinates(ArrayRef<OpFoldResult> counts, Value index);
  Value tileOf(Value memref, ArrayRef<std::optional<unsigned>> dims);
  Value memrefOf(Value tensor);
  Value temporaryFor(Value tensor);
  Value placeOf(OpResult result);
  LogicalResult emit(linalg::LinalgOp op);
  LogicalResult emitBody(linalg::LinalgOp source, linalg::LinalgOp target);

  func::FuncOp kernel;
  const TileSpace &space;
  const target::Limits &limits;
  OpBuilder builder;
  Location loc;
  exec::ParallelOp loop;
  DenseMap<unsigned, OpFoldResult> offsets, sizes, extents;
  /// Where the current tile of a tensor is.
  DenseMap<Value, Value> places;
  unsigned temporaries = 0;
};

OpFoldResult KernelTiler::offsetOf(unsigned dim) {
  auto it = offsets.find(dim);
  return it == offsets.end() ? OpFoldResult(builder.getIndexAttr(0)) : it->second;
}

OpFoldResult KernelTiler::sizeOf(unsigned dim) {
  auto it = sizes.find(dim);
  return it == sizes.end() ? extentOf(dim) : it->second;
}

/// Extents are computed once, at the start of the kernel.
OpFoldResult KernelTiler::extentOf(unsigned dim) {
  auto [it, inserted] = extents.try_emplace(dim);
  if (!inserted)
    return it->second;
  int64_t extent = space.extent(dim);
  if (!ShapedType::isDynamic(extent))
    return it->second = builder.getIndexAttr(extent);
  OpBuilder::InsertionGuard guard(builder);
  auto [source, position] = space.extentSource(dim);
  if (auto empty = source.getDefiningOp<tensor::EmptyOp>())
    return it->second = empty.getDynamicSize(position);
  if (auto definition = source.getDefiningOp<bufferization::ToTensorOp>())
    source = definition.getBuffer();
  builder.setInsertionPointAfterValue(source);
  return it->second = memref::DimOp::create(builder, loc, source, position).getResult();
}

/// index -> one coordinate for each tiled dim, the last fastest.
void KernelTiler::divideIntoCoordinates(ArrayRef<OpFoldResult> counts, Value index) {
  ArrayRef<TiledDim> tiled = space.tiledDims();
  for (unsigned i = tiled.size(); i-- > 0;) {
    Value coordinate = index;
    if (i > 0) {
      Value count = getValueOrCreateConstantIndexOp(builder, loc, counts[i]);
      coordinate = arith::RemUIOp::create(builder, loc, index, count);
      index = arith::DivUIOp::create(builder, loc, index, count);
    }
    auto [dim, size] = tiled[i];
    if (size == 1) {
      offsets[dim] = coordinate;
      sizes[dim] = builder.getIndexAttr(1);
      continue;
    }
    Value step = arith::ConstantIndexOp::create(builder, loc, size);
    Value offset = arith::MulIOp::create(builder, loc, coordinate, step);
    offsets[dim] = offset;
    int64_t extent = space.extent(dim);
    if (!ShapedType::isDynamic(extent) && extent % size == 0) {
      sizes[dim] = builder.getIndexAttr(size);
      continue;
    }
    Value all = getValueOrCreateConstantIndexOp(builder, loc, extentOf(dim));
    Value rest = arith::SubIOp::create(builder, loc, all, offset);
    sizes[dim] = arith::MinSIOp::create(builder, loc, rest, step).getResult();
  }
}

void KernelTiler::makeLoop() {
  SmallVector<OpFoldResult> counts;
  Value total;
  for (auto [dim, size] : space.tiledDims()) {
    OpFoldResult extent = extentOf(dim);
    OpFoldResult count;
    if (auto constant = getConstantIntValue(extent)) {
      count = builder.getIndexAttr(llvm::divideCeil(*constant, size));
    } else {
      Value step = arith::ConstantIndexOp::create(builder, loc, size);
      count = arith::CeilDivUIOp::create(builder, loc, cast<Value>(extent), step).getResult();
    }
    counts.push_back(count);
    Value value = getValueOrCreateConstantIndexOp(builder, loc, count);
    total = total ? arith::MulIOp::create(builder, loc, total, value).getResult() : value;
  }
  if (!total)
    return; // nothing to divide: the whole kernel is one tile
  int64_t grain =
      std::max<int64_t>(1, limits.taskElements / std::max<int64_t>(1, space.tileWork()));
  loop = exec::ParallelOp::create(builder, loc, total, grain);
  Block *body = builder.createBlock(&loop.getBody(), {}, {builder.getIndexType()}, {loc});
  builder.setInsertionPointToStart(body);
  divideIntoCoordinates(counts, loop.getInductionVariable());
}

/// The part of a whole buffer that belongs to the current tile.
Value KernelTiler::tileOf(Value memref, ArrayRef<std::optional<unsigned>> dims) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<OpFoldResult> from, count, strides(dims.size(), builder.getIndexAttr(1));
  bool whole = true;
  for (auto [position, dim] : llvm::enumerate(dims)) {
    if (dim && offsets.contains(*dim)) {
      whole = false;
      from.push_back(offsetOf(*dim));
      count.push_back(sizeOf(*dim));
      continue;
    }
    from.push_back(builder.getIndexAttr(0));
    if (type.isDynamicDim(position))
      count.push_back(dim ? extentOf(*dim) : OpFoldResult(builder.getIndexAttr(1)));
    else
      count.push_back(builder.getIndexAttr(type.getDimSize(position)));
  }
  if (whole)
    return memref;
  return memref::SubViewOp::create(builder, loc, memref, from, count, strides);
}

/// Buffer behind a tensor that the kernel reads as a whole.
Value KernelTiler::memrefOf(Value tensor) {
  auto definition = tensor.getDefiningOp<bufferization::ToTensorOp>();
  return definition ? definition.getBuffer() : Value();
}

Value KernelTiler::temporaryFor(Value tensor) {
  ++temporaries;
  auto type = cast<RankedTensorType>(tensor.getType());
  // Allocated with the size of a full tile, which does not depend on the iteration.
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  SmallVector<OpFoldResult> actual;
  bool partial = false;
  for (auto [position, dim] : llvm::enumerate(space.dimsOf(tensor))) {
    OpFoldResult size = dim ? sizeOf(*dim) : OpFoldResult(builder.getIndexAttr(1));
    actual.push_back(size);
    std::optional<int64_t> constant = getConstantIntValue(size);
    if (constant) {
      shape.push_back(*constant);
    } else if (int64_t tile = space.tileSize(*dim)) {
      shape.push_back(tile);
      partial = true;
    } else {
      shape.push_back(ShapedType::kDynamic);
      dynamic.push_back(cast<Value>(size));
    }
  }
  Value buffer =
      memref::AllocOp::create(builder, loc, MemRefType::get(shape, type.getElementType()), dynamic);
  if (!partial)
    return buffer;
  SmallVector<OpFoldResult> zeros(shape.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> ones(shape.size(), builder.getIndexAttr(1));
  return memref::SubViewOp::create(builder, loc, buffer, zeros, actual, ones);
}

/// A result is computed where the kernel wants it, if it is one of the kernel's results, else in a
/// temporary.
Value KernelTiler::placeOf(OpResult result) {
  if (Value destination = space.destinationOf(result))
    return tileOf(destination, space.dimsOf(result));
  return temporaryFor(result);
}

/// Reads of whole tensors inside a body become loads.
LogicalResult KernelTiler::emitBody(linalg::LinalgOp source, linalg::LinalgOp target) {
  WalkResult walk = target->walk([&](tensor::ExtractOp extract) {
    Value memref = memrefOf(extract.getTensor());
    if (!memref) {
      source.emitOpError("reads single elements of a value computed in the same kernel");
      return WalkResult::interrupt();
    }
    OpBuilder inner(extract);
    auto load = memref::LoadOp::create(inner, extract.getLoc(), memref, extract.getIndices());
    extract.replaceAllUsesWith(load.getResult());
    extract.erase();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult KernelTiler::emit(linalg::LinalgOp op) {
  // Nothing to do: a reduction of nothing is its initial value, which is in its place.
  if (llvm::is_contained(op.getStaticLoopRanges(), 0)) {
    for (OpOperand &init : op.getDpsInitsMutable())
      places[op.getTiedOpResult(&init)] = places.lookup(init.get());
    return success();
  }
  SmallVector<Value> operands;
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value value = input->get();
    if (!isa<RankedTensorType>(value.getType())) {
      operands.push_back(value);
      continue;
    }
    if (Value place = places.lookup(value)) {
      operands.push_back(place);
      continue;
    }
    Value memref = memrefOf(value);
    if (!memref)
      return op.emitOpError("has an operand that is neither an argument nor a value of the kernel");
    operands.push_back(tileOf(memref, space.dimsOf(value)));
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    OpResult result = op.getTiedOpResult(&init);
    // An initial value that the op reads is computed in this kernel, by an op of its own, in the
    // place of the result.
    Value place;
    if (op.payloadUsesValueFromOperand(&init)) {
      place = places.lookup(init.get());
      if (!place)
        return op.emitOpError("updates a value that the kernel did not compute");
    } else {
      place = placeOf(result);
    }
    places[result] = place;
    operands.push_back(place);
  }
  auto tiled = cast<linalg::LinalgOp>(mlir::clone(builder, op, TypeRange(), operands));
  SmallVector<OpFoldResult> loopOffsets;
  for (unsigned dim : space.loopsOf(op))
    loopOffsets.push_back(offsetOf(dim));
  OpBuilder::InsertionGuard guard(builder);
  linalg::offsetIndices(builder, tiled, loopOffsets);
  return emitBody(op, tiled);
}

/// Sizes of a tensor are those of the memory it was read from.
void replaceSizeQueries(bufferization::ToTensorOp read) {
  for (Operation *user : llvm::make_early_inc_range(read->getUsers()))
    if (auto dim = dyn_cast<tensor::DimOp>(user)) {
      OpBuilder at(dim);
      dim.replaceAllUsesWith(
          memref::DimOp::create(at, dim.getLoc(), read.getBuffer(), dim.getIndex()).getResult());
      dim.erase();
    }
}

LogicalResult KernelTiler::run() {
  Block &block = kernel.getBody().front();
  SmallVector<Operation *> old;
  SmallVector<linalg::LinalgOp> ops;
  for (Operation &op : block.without_terminator()) {
    if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
      ops.push_back(linalgOp);
    if (isa<linalg::LinalgOp, tensor::EmptyOp, bufferization::ToTensorOp,
            bufferization::MaterializeInDestinationOp>(op))
      old.push_back(&op);
  }
  for (Operation *op : old)
    if (auto read = dyn_cast<bufferization::ToTensorOp>(op))
      replaceSizeQueries(read);
  builder.setInsertionPoint(block.getTerminator());
  emitRangeChecks(kernel, builder);
  makeLoop();
  for (linalg::LinalgOp op : ops)
    if (failed(emit(op)))
      return failure();
  for (Operation *op : llvm::reverse(old))
    if (op->use_empty())
      op->erase();
    else
      return op->emitOpError("is still used after tiling its kernel");
  return success();
}

struct TileKernels : cpu::impl::CpuTileKernelsBase<TileKernels> {
  void runOnOperation() override {
    func::FuncOp kernel = getOperation();
    if (!kernel->hasAttr(exec::kKernelAttr) || kernel.isDeclaration() ||
        (kernel.getOps<bufferization::MaterializeInDestinationOp>().empty() &&
         kernel.getOps<exec::CheckRangeOp>().empty()))
      return;
    if (failed(generalize(kernel)))
      return signalPassFailure();
    FailureOr<target::Limits> limits = target::readLimits(kernel);
    if (failed(limits))
      return signalPassFailure();
    FailureOr<TileSpace> space = TileSpace::analyze(kernel, *limits, /*joinsRows=*/true);
    if (failed(space))
      return signalPassFailure();
    KernelTiler tiler(kernel, *space, *limits);
    if (failed(tiler.run()))
      return signalPassFailure();
    ++tiledKernels;
    temporaries += tiler.temporaryCount();
  }

  /// Named ops become generic ones, except fills, each of which gets one user; every destination
  /// gets a value of its own.
  static LogicalResult generalize(func::FuncOp kernel) {
    IRRewriter rewriter(kernel.getContext());
    for (auto fill : llvm::make_early_inc_range(kernel.getOps<linalg::FillOp>())) {
      rewriter.setInsertionPoint(fill);
      for (OpOperand &use : llvm::make_early_inc_range(fill.getResult(0).getUses()))
        if (!fill.getResult(0).hasOneUse())
          use.set(rewriter.clone(*fill)->getResult(0));
    }
    for (auto op : llvm::make_early_inc_range(kernel.getOps<linalg::LinalgOp>())) {
      if (isa<linalg::GenericOp, linalg::FillOp>(op.getOperation()))
        continue;
      rewriter.setInsertionPoint(op);
      if (failed(linalg::generalizeNamedOp(rewriter, op)))
        return op.emitOpError("has no generic form");
    }
    separateDestinations(kernel);
    return success();
  }
};

} // namespace
