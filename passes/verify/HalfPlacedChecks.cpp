// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/HalfPlaced.h"

#include "dialects/dist/Dist.h"

using namespace mlir;

std::string shardc::problemOfHalfPlacedOp(Operation *op) {
  auto isPlaced = [](Type type) { return !!dist::getLayout(type); };
  auto isUnplaced = [](Type type) { return isa<TensorType>(type) && !dist::getLayout(type); };
  if (llvm::none_of(op->getResultTypes(), isPlaced))
    return "";
  if (llvm::any_of(op->getResultTypes(), isUnplaced))
    return "has results with and without a layout: it is placed as a whole, or not at all";
  if (isa<dist::RedistributeOp>(op))
    return "";
  for (auto [number, type] : llvm::enumerate(op->getOperandTypes()))
    if (isUnplaced(type))
      return "has results with a layout, but operand " + std::to_string(number) +
             " has none: only dist.redistribute starts from what is still to be placed";
  return "";
}
