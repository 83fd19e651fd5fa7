// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/Variation.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace shardc;

namespace {

/// The bits that an op without operands brings along.
Variation::Bits bitsOfSource(Operation *op) {
  auto along = [](gpu::Dimension dim, Variation::Bits x) {
    return x << static_cast<unsigned>(dim);
  };
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return along(id.getDimension(), Variation::kThreadX);
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return along(id.getDimension(), Variation::kBlockX);
  if (isa<gpu::LaneIdOp, gpu::SubgroupIdOp>(op))
    return 7 * Variation::kThreadX;
  bool isSame =
      matchPattern(op, m_Constant()) || isa<gpu::BlockDimOp, gpu::GridDimOp, gpu::SubgroupSizeOp,
                                            gpu::NumSubgroupsOp, memref::GetGlobalOp>(op);
  return isSame ? 0 : Variation::kAll;
}

} // namespace

Variation::Variation(Region &code, const DenseMap<Value, Bits> &arguments) : known(arguments) {
  // What a loop carries is known after its body: once more for each loop around.
  do {
    changed = false;
    for (Block &block : code)
      for (Operation &op : block)
        visit(&op);
  } while (changed);
}

Variation::Bits Variation::ofOperands(Operation *op) const {
  Bits bits = 0;
  for (Value operand : op->getOperands())
    bits |= of(operand);
  return bits;
}

void Variation::add(Value value, Bits bits) {
  if (bits == 0)
    return;
  Bits &old = known[value];
  changed |= (old | bits) != old;
  old |= bits;
}

void Variation::visit(Operation *op) {
  Bits bits = ofOperands(op);
  if (op->getNumRegions() > 0) {
    bits |= passed.lookup(op);
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (BlockArgument argument : block.getArguments())
          add(argument, bits);
        for (Operation &inner : block)
          visit(&inner);
        if (block.mightHaveTerminator())
          passed[op] |= ofOperands(block.getTerminator());
      }
    bits |= passed.lookup(op);
  } else if (!isMemoryEffectFree(op)) {
    bits = kAll;
  } else if (op->getNumOperands() == 0) {
    bits |= bitsOfSource(op);
  }
  for (Value result : op->getResults())
    add(result, bits);
}
