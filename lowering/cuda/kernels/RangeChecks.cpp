// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/kernels/RangeChecks.h"

#include "lowering/cuda/kernels/Launches.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shardc::cuda {
namespace {

constexpr int64_t kCheckThreads = 256;

/// Extents of the host that must not be 0 for something to happen.
using Extents = SmallVector<OpFoldResult>;

/// What must not be empty for an op that computes all its elements to read all those of an operand:
/// the loops that its map of the operand lacks. None where it may leave some out in any case.
std::optional<Extents> extentsBeside(FusedKernel &kernel, linalg::LinalgOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
    return std::nullopt;
  Extents beside;
  for (auto [loop, extent] : llvm::enumerate(kernel.loopExtents(op))) {
    if (map.isFunctionOfDim(loop) || getConstantIntValue(extent).value_or(0) > 0)
      continue;
    if (isZeroInteger(extent))
      return std::nullopt;
    beside.push_back(extent);
  }
  return beside;
}

/// Of each op, what must not be empty for all its elements to be computed: nothing where a
/// destination gets them, else what the reader asks for that needs least. Ops that are not here
/// have no such reader.
using Computed = llvm::MapVector<Operation *, Extents>;

Computed findComputed(FusedKernel &kernel) {
  Computed computed;
  auto offer = [&](Operation *op, Extents extents) {
    auto [it, inserted] = computed.try_emplace(op, extents);
    if (!inserted && extents.size() < it->second.size())
      it->second = std::move(extents);
  };
  for (linalg::LinalgOp op : llvm::reverse(kernel.getOps())) {
    if (llvm::any_of(op->getResults(),
                     [&](Value result) { return !kernel.destinationsOf(result).empty(); }))
      offer(op, {});
    auto found = computed.find(op);
    if (found == computed.end())
      continue;
    Extents own = found->second; // all readers of the op have been here
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
      if (!producer || op.getMatchingBlockArgument(operand).use_empty())
        continue;
      std::optional<Extents> extents = extentsBeside(kernel, op, *operand);
      if (!extents)
        continue;
      for (OpFoldResult extent : own)
        if (!llvm::is_contained(*extents, extent))
          extents->push_back(extent);
      offer(producer, std::move(*extents));
    }
  }
  return computed;
}

/// When positions are left that no element is computed from: never (no value), always (null), or
/// where an i1 holds.
std::optional<Value> whenUnread(FusedKernel &kernel, exec::CheckRangeOp check,
                                const Computed &computed, OpBuilder &host) {
  std::optional<Extents> least;
  for (const auto &[reader, own] : computed) {
    bool looksUp = false;
    reader->walk([&](tensor::ExtractOp) { looksUp = true; });
    if (!looksUp)
      continue;
    auto op = cast<linalg::LinalgOp>(reader);
    for (OpOperand *operand : op.getDpsInputOperands()) {
      if (operand->get() != check.getIndices())
        continue;
      std::optional<Extents> extents = extentsBeside(kernel, op, *operand);
      if (!extents)
        continue;
      llvm::append_range(*extents, own);
      if (!least || extents->size() < least->size())
        least = std::move(extents);
    }
  }
  if (!least)
    return Value();
  if (least->empty())
    return std::nullopt;
  Location loc = check.getLoc();
  Value unread, zero = arith::ConstantIndexOp::create(host, loc, 0);
  for (OpFoldResult extent : *least) {
    Value isEmpty =
        arith::CmpIOp::create(host, loc, arith::CmpIPredicate::eq, cast<Value>(extent), zero);
    unread = unread ? arith::OrIOp::create(host, loc, unread, isEmpty).getResult() : isEmpty;
  }
  return unread;
}

/// A launch that checks all positions where `when` holds, or is null.
void emitLaunch(exec::CheckRangeOp check, Value memory, Value when, OpBuilder &host) {
  Location loc = check.getLoc();
  SmallVector<OpFoldResult> sizes = memref::getMixedSizes(host, loc, memory);
  OpFoldResult count = sizes.empty() ? host.getIndexAttr(1) : multiply(host, loc, sizes);
  OpFoldResult blocks = divideUp(host, loc, count, kCheckThreads);
  if (when) {
    Value all = getValueOrCreateConstantIndexOp(host, loc, blocks);
    Value none = arith::ConstantIndexOp::create(host, loc, 0);
    blocks = arith::SelectOp::create(host, loc, when, all, none).getResult();
  }
  createLaunch(host, loc, blocks, kCheckThreads, {}, [&](OpBuilder &b, gpu::LaunchOp launch) {
    DeviceIndex device(b, loc, staticProduct(sizes));
    Value thread = device.globalThread(launch);
    auto exists = scf::IfOp::create(b, loc, device.less(thread, device.of(count)),
                                    /*withElseRegion=*/false);
    OpBuilder inner = OpBuilder::atBlockTerminator(exists.thenBlock());
    DeviceIndex inside = device.at(inner);
    SmallVector<Value> position;
    for (Value at : inside.delinearize(thread, sizes))
      position.push_back(inside.toIndex(at));
    Value index = memref::LoadOp::create(inner, loc, memory, position);
    auto bound = [&](Value value) {
      return arith::IndexCastOp::create(inner, loc, index.getType(), value).getResult();
    };
    Value below =
        arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::slt, index, bound(check.getLow()));
    Value above =
        arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::sge, index, bound(check.getHigh()));
    Value outside = arith::OrIOp::create(inner, loc, below, above);
    exec::FailIfOp::create(inner, loc, outside, check.getMessageAttr());
  });
}

} // namespace

LogicalResult emitRangeChecks(FusedKernel &kernel, OpBuilder &host) {
  SmallVector<exec::CheckRangeOp> checks =
      llvm::to_vector(kernel.getFunction().getOps<exec::CheckRangeOp>());
  if (checks.empty())
    return success();
  Computed computed = findComputed(kernel);
  bool valid = true;
  for (exec::CheckRangeOp check : checks) {
    Value memory = kernel.placeOf(check.getIndices());
    if (!memory) {
      check.emitOpError("checks positions that the kernel computes: they must be in memory");
      valid = false;
      continue;
    }
    std::optional<Value> when = whenUnread(kernel, check, computed, host);
    if (!when)
      continue;
    emitLaunch(check, memory, *when, host);
  }
  return success(valid);
}

} // namespace shardc::cuda
