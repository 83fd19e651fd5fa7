// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/gradient/CheckBackward.h"

#include "dialects/aten/Aten.h"
#include "dialects/aten/PastAutograd.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"

using namespace mlir;
using namespace shardc;

bool shardc::isMutation(func::FuncOp function, unsigned result) {
  auto kind = function.getResultAttrOfType<StringAttr>(result, dist::kKindAttr);
  return kind && kind.getValue().ends_with("_mutation");
}

/// Values on the way to the loss, and arguments that are differentiated, that the function writes
/// back: what the gradient is one of is not there any more when the function has run.
static LogicalResult checkMutations(func::FuncOp function, const Backward &backward,
                                    ArrayRef<unsigned> wrt) {
  bool allowed = true;
  auto result = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (!isMutation(function, i))
      continue;
    SmallVector<StringRef> names = dist::getNames(function.getResultAttrDict(i));
    StringRef name = names.empty() ? StringRef() : names.front();
    bool isWanted = llvm::any_of(wrt, [&](unsigned argument) {
      return llvm::is_contained(dist::getNames(function.getArgAttrDict(argument)), name);
    });
    Value value = result.getOperand(i);
    if (!isWanted && !backward.isOnPath(value))
      continue;
    allowed = false;
    InFlightDiagnostic diagnostic = emitError(value.getLoc())
                                    << "'" << name << "' is written back, in "
                                    << describePlace(value.getLoc()) << ", ";
    if (isWanted)
      diagnostic << "and its gradient is asked for: leave it out of 'wrt'";
    else
      diagnostic << "and the loss depends on what is written: compute it from a detached value";
  }
  return success(allowed);
}

/// What was written past autograd, over a value that has a gradient.
static LogicalResult checkWrites(func::FuncOp function, const Backward &backward) {
  bool allowed = true;
  for (Operation &op : function.getOps()) {
    if (!op.hasAttr(aten::kPastAutogradAttr) || !backward.isReached(op.getResult(0)))
      continue;
    allowed = false;
    emitError(op.getLoc())
        << "the loss depends on a tensor that has a gradient and is written past "
           "autograd, inside torch.no_grad() or through a detached view, in "
        << describePlace(op.getLoc()) << "; write into a clone, or outside torch.no_grad()";
  }
  return success(allowed);
}

/// An alias in a graph that PyTorch decomposed may have been a detach: nothing in the graph says
/// so.
void shardc::warnOfAliases(func::FuncOp function, const Backward &backward) {
  for (auto op : function.getOps<aten::AliasOp>())
    if (!op.getDetached() && backward.isOnPath(op.getResult()))
      emitWarning(op.getLoc()) << "the gradient passes '" << op->getName() << "' op in "
                               << describePlace(op.getLoc())
                               << ", which was a detach if PyTorch's own decompositions were run; "
                                  "export the model with 'shardc export', which keeps detach";
}

LogicalResult shardc::checkBackward(func::FuncOp function, Backward &backward,
                                    ArrayRef<unsigned> wrt) {
  bool usable = succeeded(backward.checkOps());
  usable &= succeeded(checkMutations(function, backward, wrt));
  usable &= succeeded(checkWrites(function, backward));
  return success(usable);
}
