// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/ElementwiseUpdate.h"

#include "dialects/exec/Exec.h"
#include "lowering/linalg/Iteration.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace shardc::memory {

namespace {

/// Whether loop i runs over dim i; one of a single step need not.
bool isIdentity(const Iteration::Access &access, ArrayRef<int64_t> loops) {
  if (access.inMemory || access.loops.size() != loops.size())
    return false;
  for (auto [loop, number] : llvm::enumerate(access.loops))
    if (number != static_cast<int>(loop) && (number != kNoLoop || loops[loop] != 1))
      return false;
  return true;
}

/// Whether each element of the result is computed from that of `operand` at the same place.
bool isElementwiseIn(Operation *op, OpOperand &operand) {
  std::optional<Iteration> iteration = describeIteration(op);
  if (!iteration || iteration->reduces || llvm::is_contained(iteration->whole, true) ||
      operand.getOperandNumber() >= iteration->operands.size())
    return false;
  return isIdentity(iteration->operands[operand.getOperandNumber()], iteration->loops) &&
         isIdentity(iteration->result, iteration->loops);
}

/// The op that computes what is written to `destination`; null where several values are, or none.
Operation *producerOf(BlockArgument destination) {
  Operation *producer = nullptr;
  for (Operation *user : destination.getUsers()) {
    auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user);
    if (!write || producer)
      return nullptr;
    Value source = write.getSource();
    while (auto cast = source.getDefiningOp<UnrealizedConversionCastOp>())
      source = cast.getOperand(0);
    producer = source.getDefiningOp();
    if (!producer || isa<bufferization::ToTensorOp>(producer))
      return nullptr;
  }
  return producer;
}

/// `op` and all that it is computed from.
llvm::SmallPtrSet<Operation *, 16> originsOf(Operation *op) {
  llvm::SmallPtrSet<Operation *, 16> origins{op};
  SmallVector<Operation *> work{op};
  while (!work.empty())
    for (Value operand : work.pop_back_val()->getOperands())
      if (Operation *origin = operand.getDefiningOp(); origin && origins.insert(origin).second)
        work.push_back(origin);
  return origins;
}

} // namespace

bool canUpdateInPlace(func::FuncOp kernel, unsigned source, unsigned destination) {
  if (kernel.isDeclaration() || !kernel.getBody().hasOneBlock())
    return false;
  Block &block = kernel.getBody().front();
  BlockArgument from = block.getArgument(source), to = block.getArgument(destination);
  Operation *producer = producerOf(to);
  if (from.getType() != to.getType() || !producer)
    return false;
  // Teams of threads that have no row of their own, and threads beyond the end of one, read what
  // exists instead: an element that another thread may have written.
  if (llvm::any_of(block, [](Operation &op) {
        std::optional<Iteration> iteration = describeIteration(&op);
        return iteration && iteration->reduces;
      }))
    return false;
  llvm::SmallPtrSet<Operation *, 16> origins = originsOf(producer);
  SmallVector<std::pair<Value, bool>> work; // values that depend on it, and whether they are it
  for (Operation *user : from.getUsers()) {
    if (!isa<bufferization::ToTensorOp>(user))
      return false;
    work.push_back({user->getResult(0), true});
  }
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!work.empty()) {
    auto [value, isOld] = work.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (op->getBlock() != &block)
        return false;
      if (isa<UnrealizedConversionCastOp>(op)) {
        work.push_back({op->getResult(0), isOld});
        continue;
      }
      if (isOld && !origins.contains(op))
        return false;
      if (isa<bufferization::MaterializeInDestinationOp>(op))
        continue;
      if (!isElementwiseIn(op, use))
        return false;
      if (seen.insert(op).second)
        for (Value result : op->getResults())
          work.push_back({result, false});
    }
  }
  return true;
}

void makeInPlace(func::FuncOp kernel, ArrayRef<InPlaceArguments> pairs) {
  Block &block = kernel.getBody().front();
  llvm::BitVector isGone(block.getNumArguments());
  llvm::SmallDenseSet<unsigned> inPlace;
  for (auto [source, destination] : pairs) {
    block.getArgument(source).replaceAllUsesWith(block.getArgument(destination));
    isGone.set(source);
    inPlace.insert(destination);
  }
  SmallVector<int64_t> written, updated;
  auto writes = kernel->getAttrOfType<DenseI64ArrayAttr>(exec::kWritesAttr);
  int64_t number = 0;
  for (unsigned i = 0; i < block.getNumArguments(); ++i) {
    if (isGone[i])
      continue;
    if (llvm::is_contained(writes.asArrayRef(), static_cast<int64_t>(i)))
      written.push_back(number);
    if (inPlace.contains(i))
      updated.push_back(number);
    ++number;
  }
  Builder b(kernel.getContext());
  (void)kernel.eraseArguments(isGone);
  kernel->setAttr(exec::kWritesAttr, b.getDenseI64ArrayAttr(written));
  kernel->setAttr(exec::kInPlaceAttr, b.getDenseI64ArrayAttr(updated));
}

} // namespace shardc::memory
