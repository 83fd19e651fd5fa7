// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/gradient/partial/Unplace.h"

#include "dialects/dist/Shardings.h"
#include "passes/placement/core/TensorStates.h"

using namespace mlir;

namespace shardc {
namespace {

class Unplacer {
public:
  explicit Unplacer(func::FuncOp function) : function(function) {}

  void run(ArrayRef<dist::RedistributeOp> changed) {
    // The program says in which order it uses what: followers are found before anything changes.
    llvm::SetVector<Value> reached;
    for (dist::RedistributeOp op : changed)
      reached.insert(op.getResult());
    for (size_t i = 0; i < reached.size(); ++i)
      for (Operation *user : reached[i].getUsers())
        follow(user, reached);
    for (dist::RedistributeOp op : dissolved) {
      op.getResult().replaceAllUsesWith(op.getInput());
      op.erase();
    }
    for (Operation *op : followers)
      dissolveOperands(op);
    for (Operation *op : followers)
      unplace(op);
  }

private:
  void follow(Operation *user, llvm::SetVector<Value> &reached) {
    if (isa<func::ReturnOp>(user))
      return;
    auto redistribute = dyn_cast<dist::RedistributeOp>(user);
    if (redistribute && (redistribute.getBackward() || isReturned(redistribute.getResult()) ||
                         changesMesh(redistribute)))
      return;
    if (redistribute)
      dissolved.insert(redistribute);
    else if (llvm::none_of(user->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return; // asks for a size
    else
      followers.insert(user);
    reached.insert(user->result_begin(), user->result_end());
  }

  /// Ops are placed on one mesh: what comes from another is there by this redistribution alone.
  static bool changesMesh(dist::RedistributeOp op) {
    dist::LayoutAttr source = op.getSourceLayout(), target = op.getTargetLayout();
    return source && target && source.getMesh() != target.getMesh();
  }

  static bool isReturned(Value value) {
    return llvm::any_of(value.getUsers(), llvm::IsaPred<func::ReturnOp>);
  }

  /// The op reads what was redistributed for it and for other followers alone as it was before;
  /// where others read the same, the redistribution stays and is there for all.
  void dissolveOperands(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      auto made = operand.get().getDefiningOp<dist::RedistributeOp>();
      if (!made || made.getBackward() || changesMesh(made))
        continue;
      operand.set(made.getInput());
      if (made->use_empty())
        made.erase();
    }
  }

  void unplace(Operation *op) {
    SmallVector<Attribute> wishes;
    for (Value value : op->getResults()) {
      auto type = cast<RankedTensorType>(value.getType());
      if (isReturned(value))
        keepReturned(value);
      wishes.push_back(dist::ShardingAttr::get(
          op->getContext(), wishFor(dist::getLayout(type).getValue(), type.getShape())));
      value.setType(RankedTensorType::get(type.getShape(), type.getElementType()));
    }
    op->setDiscardableAttr(dist::kShardingAttr, ArrayAttr::get(op->getContext(), wishes));
  }

  void keepReturned(Value value) {
    Operation *end = function.getBody().front().getTerminator();
    OpBuilder builder(end);
    auto kept = dist::RedistributeOp::create(builder, value.getLoc(), value.getType(), value,
                                             /*backward=*/false);
    value.replaceUsesWithIf(kept, [&](OpOperand &use) { return use.getOwner() == end; });
  }

  func::FuncOp function;
  llvm::SetVector<dist::RedistributeOp> dissolved;
  llvm::SetVector<Operation *> followers;
};

} // namespace

void unplaceFollowers(func::FuncOp function, ArrayRef<dist::RedistributeOp> changed) {
  Unplacer(function).run(changed);
}

void eraseIdleRedistributions(func::FuncOp function) {
  SmallVector<dist::RedistributeOp> all(function.getOps<dist::RedistributeOp>());
  for (dist::RedistributeOp op : llvm::reverse(all)) {
    if (op.getInput().getType() == op.getResult().getType())
      op.getResult().replaceAllUsesWith(op.getInput());
    if (op->use_empty())
      op.erase();
  }
}

} // namespace shardc
