// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/PlacedParts.h"

#include "dialects/dist/FindMesh.h"
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

bool isElsewhere(Value value, const Mesh &mesh) {
  dist::LayoutAttr layout = dist::getLayout(value.getType());
  return layout && !(layout.getValue().mesh == mesh);
}

bool isHalfPlaced(func::FuncOp function, const Mesh &mesh) {
  auto isHere = [&](Value value) { return isPlacedTensor(value) && !isElsewhere(value, mesh); };
  return llvm::any_of(function.getArguments(), isHere) ||
         llvm::any_of(function.getBody().getOps(),
                      [&](Operation &op) { return llvm::any_of(op.getResults(), isHere); });
}

LogicalResult checkPlacedParts(func::FuncOp function, const Mesh &mesh) {
  bool ok = true;
  auto checkMesh = [&](Value value) {
    dist::LayoutAttr layout = dist::getLayout(value.getType());
    if (!layout || layout.getValue().mesh == mesh || dist::isNamedMesh(function, layout.getMesh()))
      return;
    emitError(value.getLoc()) << "has a layout on the mesh " << layout.getValue().mesh.str()
                              << ", which is not the module's 'dist.mesh', nor one of its "
                                 "'dist.meshes'";
    ok = false;
  };
  llvm::for_each(function.getArguments(), checkMesh);
  for (Operation &op : function.getBody().getOps()) {
    llvm::for_each(op.getResults(), checkMesh);
    auto elsewhere =
        llvm::find_if(op.getOperands(), [&](Value operand) { return isElsewhere(operand, mesh); });
    if (elsewhere != op.operand_end() && !isa<dist::RedistributeOp, func::ReturnOp>(op) &&
        !isPlaced(&op)) {
      op.emitOpError("is placed on the module's 'dist.mesh', but operand ")
          << elsewhere.getIndex() << " is on the mesh "
          << dist::getLayout((*elsewhere).getType()).getValue().mesh.str()
          << "; redistribute it first";
      ok = false;
    }
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
