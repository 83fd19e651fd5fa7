// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/BufferLifetimes.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;

namespace shardc::memory {

static constexpr unsigned kNever = ~0u;

Value bufferOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

BufferLifetimes::BufferLifetimes(func::FuncOp entry) {
  Block &block = entry.getBody().front();
  for (Operation &op : block) {
    steps[&op] = end++;
    if (auto alloc = dyn_cast<exec::AllocOp>(op))
      allocs.push_back(alloc);
    // A collective reads its inputs and writes its outputs until the wait, or the end.
    if (auto start = dyn_cast<exec::StartOp>(op))
      completions[start] = kNever;
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      if (auto start = wait.getToken().getDefiningOp<exec::StartOp>())
        completions[start] = steps[&op];
  }
  for (auto &[op, completion] : completions)
    if (completion == kNever)
      completion = end;
  for (Operation &op : block) {
    // Views read nothing: what reads them does.
    if (isa<ViewLikeOpInterface>(op))
      continue;
    for (Value operand : op.getOperands())
      if (isa<MemRefType>(operand.getType())) {
        use(operand, steps[&op]);
        use(operand, completion(&op));
      }
  }
}

void BufferLifetimes::use(Value memref, unsigned step) {
  Value buffer = bufferOf(memref);
  auto [it, inserted] = intervals.try_emplace(buffer, Interval{step, step});
  it->second.first = std::min(it->second.first, step);
  it->second.last = std::max(it->second.last, step);
}

std::optional<BufferLifetimes::Interval> BufferLifetimes::interval(Value buffer) const {
  auto it = intervals.find(buffer);
  if (it == intervals.end())
    return std::nullopt;
  return it->second;
}

unsigned BufferLifetimes::completion(Operation *op) const {
  auto it = completions.find(op);
  return it == completions.end() ? step(op) : it->second;
}

} // namespace shardc::memory
