// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/InPlaceReads.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

/// Whether loop i runs over dim i; one of a single step need not.
static bool isIdentity(AffineMap map, ArrayRef<int64_t> loops) {
  if (map.getNumResults() != loops.size())
    return false;
  for (auto [number, expr] : llvm::enumerate(map.getResults())) {
    auto loop = dyn_cast<AffineDimExpr>(expr);
    bool isItsOwn = loop && loop.getPosition() == number;
    if (!isItsOwn && (loops[number] != 1 || !isa<AffineConstantExpr>(expr)))
      return false;
  }
  return true;
}

static bool isElementwiseIn(linalg::LinalgOp op, OpOperand &operand) {
  if (op.getNumParallelLoops() != op.getNumLoops())
    return false;
  SmallVector<int64_t> loops = op.getStaticLoopRanges();
  return isIdentity(op.getMatchingIndexingMap(&operand), loops) &&
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return isIdentity(op.getMatchingIndexingMap(&init), loops);
         });
}

/// The op that computes what is written to `destination`, and all that it computes it from.
static llvm::SmallPtrSet<Operation *, 16> originsOf(BlockArgument destination) {
  llvm::SmallPtrSet<Operation *, 16> origins;
  SmallVector<Value> work;
  for (Operation *user : destination.getUsers())
    if (auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user))
      work.push_back(write.getSource());
  while (!work.empty())
    if (Operation *op = work.pop_back_val().getDefiningOp(); op && origins.insert(op).second)
      llvm::append_range(work, op->getOperands());
  return origins;
}

void shardc::checkInPlaceReads(BlockArgument destination,
                               function_ref<void(Operation *, const Twine &)> report) {
  llvm::SmallPtrSet<Operation *, 16> origins = originsOf(destination);
  SmallVector<std::pair<Value, bool>> work; // and whether it is the old value
  for (Operation *user : destination.getUsers())
    if (isa<bufferization::ToTensorOp>(user))
      work.push_back({user->getResult(0), true});
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    auto [value, isOld] = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (isa<tensor::DimOp, bufferization::MaterializeInDestinationOp>(op))
        continue;
      if (isOld && !origins.contains(op))
        report(op, "may read after the write");
      auto computed = dyn_cast<linalg::LinalgOp>(op);
      if (op->getName().getDialectNamespace() == "aten") // no linalg yet
        continue;
      if (!isa<UnrealizedConversionCastOp>(op) && !(computed && isElementwiseIn(computed, use)))
        report(op, "computes an element from another one of");
      if (seen.insert(op).second)
        for (Value result : op->getResults())
          work.push_back({result, isa<UnrealizedConversionCastOp>(op) && isOld});
    }
  }
}
