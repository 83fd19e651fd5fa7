// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/PlacedParts.h"

#include "dialects/dist/Shardings.h"
#include "passes/verify/HalfPlaced.h"

using namespace mlir;

namespace shardc {

static bool isPlacedTensor(Value value) { return !!dist::getLayout(value.getType()); }

bool isUnplacedTensor(Value value) {
  return isa<RankedTensorType>(value.getType()) && !isPlacedTensor(value);
}

bool isPlaced(Operation *op) {
  return (llvm::any_of(op->getOperands(), isPlacedTensor) ||
          llvm::any_of(op->getResults(), isPlacedTensor)) &&
         llvm::none_of(op->getOperands(), isUnplacedTensor) &&
         llvm::none_of(op->getResults(), isUnplacedTensor);
}

bool hasUnplacedUser(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return llvm::any_of(user->getResults(), isUnplacedTensor);
  });
}

bool isHalfPlaced(func::FuncOp function) {
  return llvm::any_of(function.getArguments(), isPlacedTensor) ||
         llvm::any_of(function.getBody().getOps(),
                      [](Operation &op) { return llvm::any_of(op.getResults(), isPlacedTensor); });
}

LogicalResult checkPlacedParts(func::FuncOp function, const Mesh &mesh) {
  bool ok = true;
  auto checkMesh = [&](Value value) {
    dist::LayoutAttr layout = dist::getLayout(value.getType());
    if (!layout || layout.getValue().mesh == mesh)
      return;
    emitError(value.getLoc()) << "has a layout on the mesh " << layout.getValue().mesh.str()
                              << ", which is not the module's 'dist.mesh'";
    ok = false;
  };
  llvm::for_each(function.getArguments(), checkMesh);
  for (Operation &op : function.getBody().getOps()) {
    llvm::for_each(op.getResults(), checkMesh);
    if (std::string problem = problemOfHalfPlacedOp(&op); !problem.empty()) {
      op.emitOpError(problem);
      ok = false;
    }
  }
  return success(ok);
}

SmallVector<Sharding> wishesOf(Operation *op) {
  SmallVector<Sharding> wishes;
  if (auto list = op->getAttrOfType<ArrayAttr>(dist::kShardingAttr))
    for (dist::ShardingAttr wish : list.getAsRange<dist::ShardingAttr>())
      wishes.push_back(wish.getValue());
  return wishes;
}

} // namespace shardc
