// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/interfaces/KernelForm.h"

#include "dialects/interfaces/OpInterfaces.h"

using namespace mlir;

namespace shardc {

using Access = Iteration::Access;

static ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

static Access identity(size_t rank, int first = 0) {
  Access access;
  for (size_t i = 0; i < rank; ++i)
    access.loops.push_back(first + static_cast<int>(i));
  return access;
}

/// The loop of a dim of this size, where a dim of size 1 is repeated along longer loops.
static int repeated(int loop, int64_t size, ArrayRef<int64_t> loops) {
  return size == 1 && loops[loop] != 1 ? kNoLoop : loop;
}

/// Operand of a domain, aligned at its last dim.
static Access broadcast(Value operand, ArrayRef<int64_t> loops) {
  Access access;
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return access;
  int shift = static_cast<int>(loops.size()) - static_cast<int>(type.getRank());
  for (auto [position, size] : llvm::enumerate(type.getShape()))
    access.loops.push_back(repeated(shift + static_cast<int>(position), size, loops));
  return access;
}

static Iteration overResult(Operation *op) {
  Iteration it;
  it.loops = llvm::to_vector(shapeOf(op->getResult(0)));
  it.whole.assign(it.loops.size(), false);
  it.result = identity(it.loops.size());
  return it;
}

Iteration elementwiseIteration(Operation *op) {
  Iteration it = overResult(op);
  for (Value operand : op->getOperands())
    it.operands.push_back(broadcast(operand, it.loops));
  return it;
}

Iteration computedPositionsIteration(Operation *op) {
  Iteration it = overResult(op);
  for (size_t i = 0; i < op->getNumOperands(); ++i) {
    it.operands.push_back({});
    it.operands.back().inMemory = true;
  }
  return it;
}

Iteration reductionIteration(Operation *op, std::optional<ArrayRef<int64_t>> dims, bool keepdim) {
  Iteration it;
  it.loops = llvm::to_vector(shapeOf(op->getOperand(0)));
  it.whole.assign(it.loops.size(), !dims || dims->empty());
  if (dims)
    for (int64_t dim : *dims)
      if (dim < static_cast<int64_t>(it.loops.size()))
        it.whole[dim] = true;
  it.operands.push_back(identity(it.loops.size()));
  for (auto [loop, reduced] : llvm::enumerate(it.whole))
    if (!reduced || keepdim)
      it.result.loops.push_back(reduced ? kNoLoop : static_cast<int>(loop));
  it.reduces = true;
  return it;
}

Iteration rowIteration(Operation *op, int64_t first, int64_t end) {
  Iteration it = elementwiseIteration(op);
  for (int64_t dim = first; dim < std::min<int64_t>(end, it.loops.size()); ++dim)
    it.whole[dim] = true;
  it.reduces = true;
  return it;
}

Iteration perChannelIteration(Operation *op) {
  Iteration it = overResult(op);
  it.operands.push_back(identity(it.loops.size()));
  for (size_t i = 1; i < op->getNumOperands(); ++i)
    it.operands.push_back(identity(1, /*first=*/1));
  return it;
}

std::optional<Iteration> viewIteration(Operation *op) {
  auto view = dyn_cast<TensorViewOpInterface>(op);
  std::optional<SmallVector<int64_t>> dims;
  if (view)
    dims = view.getSourceDims();
  if (!dims)
    return std::nullopt;
  Iteration it = overResult(op);
  ArrayRef<int64_t> source = shapeOf(op->getOperand(0));
  Access access;
  access.loops.assign(source.size(), kNoLoop);
  for (auto [loop, dim] : llvm::enumerate(*dims))
    if (dim >= 0)
      access.loops[dim] = repeated(static_cast<int>(loop), source[dim], it.loops);
  it.operands.push_back(std::move(access));
  it.operands.resize(op->getNumOperands()); // sizes
  return it;
}

std::optional<Iteration> defaultIteration(Operation *op, KernelForm form) {
  switch (form) {
  case KernelForm::Elementwise:
  case KernelForm::Generator:
    return elementwiseIteration(op);
  case KernelForm::ComputedPositions:
    return computedPositionsIteration(op);
  case KernelForm::LoopView:
    return viewIteration(op);
  default:
    return std::nullopt;
  }
}

} // namespace shardc
