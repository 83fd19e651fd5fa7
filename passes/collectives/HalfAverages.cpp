// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/HalfAverages.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/Dist.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// As PyTorch's FSDP: sums of what was divided by `before` stay below the largest operand times
/// ranks / before, about the root of the number of ranks.
static double divisorBefore(int64_t ranks) {
  int64_t before = 1;
  while (ranks % before == 0 && ranks / before > before)
    before *= 2;
  return static_cast<double>(before);
}

static Value divide(OpBuilder &builder, Location location, Value tensor, double divisor) {
  if (divisor == 1)
    return tensor;
  auto scalar = RankedTensorType::get({}, builder.getF16Type());
  APFloat value(divisor);
  bool inexact = false;
  value.convert(APFloat::IEEEhalf(), APFloat::rmNearestTiesToEven, &inexact);
  Value constant =
      aten::ConstantOp::create(builder, location, scalar, DenseElementsAttr::get(scalar, value));
  return aten::DivOp::create(builder, location, tensor.getType(), tensor, constant,
                             /*rounding_mode=*/StringAttr());
}

/// Whether results have a place where they are read: not a future that is returned.
static bool isAwaited(Operation *op) {
  return llvm::all_of(op->getResults(), [](OpResult result) {
    return !isa<FutureType>(result.getType()) ||
           llvm::all_of(result.getUsers(), llvm::IsaPred<WaitOp>);
  });
}

static bool isHalfAverage(CollectiveOpInterface op) {
  return op.getReductionOrNone() == Reduction::Avg && op->getNumResults() != 0 &&
         llvm::all_of(op.getTensors(), [](Value tensor) {
           return cast<RankedTensorType>(tensor.getType()).getElementType().isF16();
         });
}

/// Before what reads the value first: a kernel any earlier would ask for the result of a collective
/// that could still take others along.
static void setInsertionPointToFirstUse(OpBuilder &builder, OpResult value) {
  Operation *first = nullptr;
  for (Operation *user : value.getUsers())
    if (Operation *here = value.getOwner()->getBlock()->findAncestorOpInBlock(*user);
        here && (!first || here->isBeforeInBlock(first)))
      first = here;
    else if (!here)
      return builder.setInsertionPointAfter(value.getOwner());
  if (first)
    builder.setInsertionPoint(first);
  else
    builder.setInsertionPointAfter(value.getOwner());
}

/// Divides every value that delivers the result.
static void divideResult(OpBuilder &builder, OpResult result, double divisor) {
  SmallVector<OpResult> delivered;
  if (isa<FutureType>(result.getType()))
    for (OpOperand &use : result.getUses())
      delivered.push_back(use.getOwner()->getResult(use.getOperandNumber()));
  else
    delivered.push_back(result);
  for (OpResult value : delivered) {
    setInsertionPointToFirstUse(builder, value);
    Value scaled = divide(builder, result.getOwner()->getLoc(), value, divisor);
    if (scaled != value)
      value.replaceAllUsesExcept(scaled, scaled.getDefiningOp());
  }
}

uint64_t shardc::scaleHalfAverages(func::FuncOp function) {
  SmallVector<CollectiveOpInterface> averages;
  function.walk([&](CollectiveOpInterface op) {
    if (isHalfAverage(op) && isAwaited(op))
      averages.push_back(op);
  });
  OpBuilder builder(function.getContext());
  auto sum = ReductionAttr::get(function.getContext(), Reduction::Sum);
  for (CollectiveOpInterface op : averages) {
    int64_t ranks = op.getGroup().getGroupSize();
    double before = divisorBefore(ranks);
    builder.setInsertionPoint(op);
    // Tensors come first; sizes, where the kind has them, after.
    for (OpOperand &operand : op->getOpOperands().take_front(op->getNumResults()))
      operand.set(divide(builder, op->getLoc(), operand.get(), before));
    if (auto reduce = dyn_cast<AllReduceOp>(op.getOperation()))
      reduce.setReductionAttr(sum);
    else
      cast<ReduceScatterOp>(op.getOperation()).setReductionAttr(sum);
    for (OpResult result : op->getResults())
      divideResult(builder, result, static_cast<double>(ranks) / before);
  }
  return averages.size();
}
