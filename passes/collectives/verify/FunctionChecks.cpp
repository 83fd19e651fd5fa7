// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/verify/Checks.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// Something of the rank that a value is computed from, through whatever; null if there is none.
static Operation *findRank(ValueRange values) {
  llvm::SetVector<Value> todo(values.begin(), values.end());
  for (size_t i = 0; i < todo.size(); ++i) {
    Operation *op = todo[i].getDefiningOp();
    if (!op)
      continue;
    if (auto extent = dyn_cast<ExtentOp>(op); extent && !extent.getExtents().getConstant())
      return op;
    if (isa<AxisIndexOp>(op))
      return op;
    todo.insert(op->operand_begin(), op->operand_end());
  }
  return nullptr;
}

namespace {

class FunctionChecker {
public:
  explicit FunctionChecker(func::FuncOp function) : function(function) {}

  LogicalResult run() {
    if (!function.getBody().hasOneBlock())
      checkBranches();
    function.walk([&](Operation *op) {
      if (auto collective = dyn_cast<CollectiveOpInterface>(op))
        check(collective);
      if (auto call = dyn_cast<func::CallOp>(op))
        check(call);
      for (Value result : op->getResults())
        if (isa<FutureType>(result.getType()))
          checkFuture(result);
    });
    return success(ok);
  }

private:
  InFlightDiagnostic error(Operation *op) {
    ok = false;
    return op->emitOpError();
  }

  void check(CollectiveOpInterface op) {
    for (Operation *parent = op->getParentOp(); parent != function;
         parent = parent->getParentOp()) {
      InFlightDiagnostic diagnostic = error(op);
      if (Operation *rank = findRank(parent->getOperands())) {
        diagnostic << "runs under '" << parent->getName().getStringRef()
                   << "', which depends on the rank: the ranks would not issue the same "
                      "collectives";
        diagnostic.attachNote(rank->getLoc()) << "the rank is asked for here";
      } else {
        diagnostic
            << "stands in a region of '" << parent->getName().getStringRef()
            << "': ranks may run it a different number of times; move it out of control flow";
      }
      return;
    }
  }

  /// Blocks of the function itself.
  void checkBranches() {
    bool communicates = false;
    function.walk([&](CollectiveOpInterface) { communicates = true; });
    if (!communicates)
      return;
    for (Block &block : function.getBody()) {
      Operation *branch = block.getTerminator();
      if (branch->getNumSuccessors() < 2)
        continue;
      InFlightDiagnostic diagnostic = error(branch);
      Operation *rank = findRank(branch->getOperands());
      diagnostic << "chooses which collectives come next"
                 << (rank
                         ? " by the rank: the ranks would not issue the same collectives"
                         : ": ranks may choose differently, but all must run the same collectives");
      if (rank)
        diagnostic.attachNote(rank->getLoc()) << "the rank is asked for here";
    }
  }

  void check(func::CallOp call) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    if (!callee)
      return;
    bool communicates = false;
    callee.walk([&](CollectiveOpInterface) { communicates = true; });
    if (communicates)
      error(call) << "calls a function that communicates: inline it, so that the sequence of "
                     "collectives is one";
  }

  void checkFuture(Value future) {
    Operation *op = future.getDefiningOp();
    int64_t ends = 0;
    for (OpOperand &use : future.getUses()) {
      if (isa<WaitOp, func::ReturnOp>(use.getOwner()))
        ++ends;
      else
        error(use.getOwner()) << "uses a future: only dist.wait and return may";
    }
    if (ends == 1)
      return;
    InFlightDiagnostic diagnostic = error(op);
    unsigned number = cast<OpResult>(future).getResultNumber();
    if (ends == 0) {
      diagnostic << "result " << number
                 << " is never waited for: nothing says when its operands may be overwritten";
      return;
    }
    diagnostic << "result " << number << " is waited for or returned " << ends
               << " times, must be once";
    for (Operation *user : future.getUsers())
      diagnostic.attachNote(user->getLoc()) << "here";
  }

  func::FuncOp function;
  bool ok = true;
};

} // namespace

LogicalResult shardc::checkFunctionSchedule(func::FuncOp function) {
  return FunctionChecker(function).run();
}
