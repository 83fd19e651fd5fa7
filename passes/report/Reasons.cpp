// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why a collective is there, told from what makes its operand and what uses its result.
#include "passes/report/CollectiveReport.h"

#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "passes/collectives/analysis/TensorNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shardc {
namespace {

std::string describeOp(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  StringRef module = getModulePath(op->getLoc());
  return module.empty() ? text : text + " in " + module.str();
}

std::string describeOperand(Value value) {
  if (StringRef name = nameOfSource(value); !name.empty())
    return ("'" + name + "'").str();
  value = behindViews(value);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "argument " + std::to_string(argument.getArgNumber());
  Operation *op = value.getDefiningOp();
  if (auto wait = dyn_cast<dist::WaitOp>(op))
    if (Operation *start =
            wait.getFutures()[cast<OpResult>(value).getResultNumber()].getDefiningOp())
      op = start;
  return describeOp(op);
}

/// Who reads the result, behind a wait.
std::string describeUser(Value value) {
  for (Operation *user : value.getUsers()) {
    if (isa<dist::WaitOp>(user))
      for (auto [future, result] : llvm::zip_equal(user->getOperands(), user->getResults()))
        if (future == value)
          return describeUser(result);
    // A function's results have names.
    if (isa<func::ReturnOp>(user)) {
      auto function = user->getParentOfType<func::FuncOp>();
      for (OpOperand &operand : user->getOpOperands())
        if (operand.get() == value)
          if (DictionaryAttr attributes = function.getResultAttrDict(operand.getOperandNumber()))
            for (StringRef name : dist::getNames(attributes))
              return ("the output '" + name + "'").str();
      return "an output";
    }
  }
  // Users are listed last first: the one that comes first in the program.
  Operation *first = nullptr;
  for (Operation *user : value.getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  if (!first)
    return "nothing";
  std::string text = describeOp(first);
  return value.hasOneUse() ? text : text + " and others";
}

} // namespace

std::string explainCollective(dist::CollectiveOpInterface op) {
  if (op.getTensors().empty())
    return "";
  std::string from = describeOperand(op.getTensors().front());
  std::string to = describeUser(op->getResult(0));
  std::string concat = std::to_string(op.getConcatDim(0)),
              split = std::to_string(op.getSplitDim(0));
  std::string partial = "partial results";
  if (std::optional<Reduction> reduction = op.getReductionOrNone())
    partial = *reduction == Reduction::Sum ? "partial sums"
                                           : "partial " + std::string(reductionName(*reduction));
  std::string more = op.getTensors().size() == 1
                         ? ""
                         : " (and " + std::to_string(op.getTensors().size() - 1) + " more tensors)";
  switch (op.getCollectiveKind()) {
  case CollectiveKind::AllReduce:
    return partial + " of " + from + more + "; " + to + " needs the total";
  case CollectiveKind::ReduceScatter:
    return partial + " of " + from + more + "; " + to + " takes shards of dim " + split;
  case CollectiveKind::AllGather:
    return "shards of dim " + concat + " of " + from + more + "; " + to + " needs all of it";
  case CollectiveKind::AllToAll:
    return "shards of dim " + concat + " of " + from + more + "; " + to + " takes shards of dim " +
           split;
  case CollectiveKind::Broadcast:
    return "one rank has " + from + more + "; " + to + " needs it on all";
  case CollectiveKind::Permute:
    return "parts of " + from + more + " move between ranks; " + to + " needs them";
  }
  return "";
}

} // namespace shardc
