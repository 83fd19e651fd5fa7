// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/Rules.h"
#include "dialects/aten/Scans.h"

using namespace mlir;

namespace shardc::aten {

static LogicalResult inferScan(Inference &inference, Value self, int64_t dim, Type elementType) {
  if (failed(inference.checkDim(dim, typeOf(self).getRank(), "dim")))
    return failure();
  return inference.result(inference.sizesOf(self), elementType);
}

template <typename Adaptor> static LogicalResult inferScanSame(Inference &inference, Adaptor op) {
  return inferScan(inference, op.getSelf(), op.getDim(), elementTypeOf(op.getSelf()));
}

/// As that of a sum, but of what is partial there is no scan.
static ShardingRule nonlinearScanRule(Operation *op, int64_t dim) {
  RuleBuilder builder = ruleBuilder(op);
  if (typeOf(op->getOperand(0)).getRank() != 0)
    builder.cooperative({dim}, /*exchange=*/1).operandDimInOnePiece(0, dim);
  return builder.build();
}

} // namespace shardc::aten

#define GET_OP_CLASSES
#include "dialects/aten/Scans.cpp.inc"

namespace shardc::aten {

LogicalResult CumprodOp::infer(Inference &inference, Adaptor op) {
  return inferScan(inference, op.getSelf(), op.getDim(),
                   sumType(elementTypeOf(op.getSelf()), op.getDtype()));
}

} // namespace shardc::aten
