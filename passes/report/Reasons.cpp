// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Why a collective is there, told from what makes its operand and what uses its result.
#include "passes/report/CollectiveReport.h"

#include "dialects/aten/Aten.h"
#include "dialects/dist/FunctionAttributes.h"
#include "dialects/interfaces/ModelLocation.h"
#include "dialects/interfaces/TensorView.h"
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

/// An exchange of blocks sends what it cut out of each tensor as one row of elements.
bool isExchange(dist::CollectiveOpInterface op) {
  return op.getCollectiveKind() == CollectiveKind::AllToAll &&
         llvm::all_of(llvm::seq<unsigned>(0, op.getTensors().size()), [&](unsigned tensor) {
           return op.getOperandType(tensor).getRank() == 1 &&
                  op.getConcatDim(tensor) == op.getSplitDim(tensor);
         });
}

/// Ops that cut messages out of a tensor, or put together what has come.
bool movesPieces(Operation *op) {
  return viewKindOf(op) || isa<aten::CatOp, dist::LeaveMeshOp, dist::EnterMeshOp>(op);
}

/// The tensor that messages are cut out of.
Value behindPieces(Value value) {
  for (value = behindViews(value); Operation *op = value.getDefiningOp();
       value = behindViews(value)) {
    if (!movesPieces(op))
      break;
    SmallVector<Value> sources;
    for (Value operand : op->getOperands())
      if (isa<RankedTensorType>(operand.getType()))
        sources.push_back(isa<aten::CatOp>(op) ? behindPieces(operand) : operand);
    if (sources.empty() || !llvm::all_equal(sources))
      break;
    value = sources.front();
  }
  return value;
}

/// Who reads what is put together from a value: the value that they read, or the value itself.
Value pieceTogether(Value value) {
  while (true) {
    Operation *next = nullptr;
    for (Operation *user : value.getUsers()) {
      if (!isa<dist::WaitOp>(user) && !movesPieces(user))
        return value;
      if (!next || user->isBeforeInBlock(next))
        next = user;
    }
    if (!next)
      return value;
    Value result = next->getResult(0);
    if (isa<dist::WaitOp>(next))
      for (auto [future, waited] : llvm::zip_equal(next->getOperands(), next->getResults()))
        if (future == value)
          result = waited;
    value = result;
  }
}

} // namespace

std::string explainCollective(dist::CollectiveOpInterface op) {
  if (op.getTensors().empty())
    return "";
  std::string more = op.getTensors().size() == 1
                         ? ""
                         : " (and " + std::to_string(op.getTensors().size() - 1) + " more tensors)";
  if (isExchange(op))
    return "parts of " + describeOperand(behindPieces(op.getTensors().front())) + more +
           " go to the ranks that need and lack them; " +
           describeUser(pieceTogether(op->getResult(0))) + " reads what they make up";
  std::string from = describeOperand(op.getTensors().front());
  std::string to = describeUser(op->getResult(0));
  std::string concat = std::to_string(op.getConcatDim(0)),
              split = std::to_string(op.getSplitDim(0));
  std::string partial = "partial results";
  if (std::optional<Reduction> reduction = op.getReductionOrNone())
    partial = *reduction == Reduction::Sum ? "partial sums"
                                           : "partial " + std::string(reductionName(*reduction));
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
