// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/InPlace.h"

#include "dialects/interfaces/OpInterfaces.h"
#include "dialects/interfaces/TensorView.h"

#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// What the tensor is another name of, or null: reshapes, copies (which take no memory where one op
/// reads them), and a value on another mesh.
static Value renamed(Operation *op) {
  if (isa<LeaveMeshOp, EnterMeshOp>(op))
    return op->getOperand(0);
  std::optional<ViewKind> view = viewKindOf(op);
  bool isWhole = view == ViewKind::Reshape || view == ViewKind::Copy || view == ViewKind::Alias;
  return isWhole ? op->getOperand(0) : Value();
}

/// Whether an op makes its result in memory that nothing else looks into.
static bool hasMemoryOfItsOwn(Operation *op) {
  // Constants are shared, and an op with effects may keep its results.
  if (op->hasTrait<OpTrait::ConstantLike>() || viewKindOf(op) ||
      !(isMemoryEffectFree(op) || isa<CallOpInterface, CollectiveOpInterface>(op)))
    return false;
  // Operands of a concatenation are computed in their part of it.
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return !kernel || kernel.getKernelForm() != KernelForm::Concatenation ||
         llvm::all_of(op->getOperands(), [](Value operand) { return operand.hasOneUse(); });
}

static bool isOverwritable(Value tensor) {
  while (tensor.hasOneUse()) {
    Operation *source = tensor.getDefiningOp();
    if (!source) // an argument is the caller's
      return false;
    Value of = renamed(source);
    if (!of)
      return hasMemoryOfItsOwn(source);
    tensor = of;
  }
  return false;
}

bool shardc::dist::worksInPlace(CollectiveOpInterface op) {
  CollectiveKind kind = op.getCollectiveKind();
  return (kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast) &&
         llvm::all_of(op.getTensors(), isOverwritable);
}
