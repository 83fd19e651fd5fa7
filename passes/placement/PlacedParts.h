// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which parts of a function have layouts already.
#ifndef SHARDC_PASSES_PLACEMENT_PLACEDPARTS_H
#define SHARDC_PASSES_PLACEMENT_PLACEDPARTS_H

#include "dialects/dist/Dist.h"
#include "dialects/sharding/Sharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Whether a value is a tensor that is still to get a layout.
bool isUnplacedTensor(mlir::Value value);

/// Whether an op is none of placement's business: all its tensors have layouts.
bool isPlaced(mlir::Operation *op);

/// Whether an op that placement is to decide about uses the value. The terminator is none.
bool hasUnplacedUser(mlir::Value value);

/// Whether a tensor has a layout on another mesh. Such tensors come and go by `dist.redistribute`,
/// and are none of placement's business.
bool isElsewhere(mlir::Value value, const Mesh &mesh);

/// Whether some tensor of the function has a layout on the mesh, so that placement starts from it.
bool isHalfPlaced(mlir::func::FuncOp function, const Mesh &mesh);

/// Reports each op that the form `half-placed` does not allow, each layout on a mesh that the
/// module does not name, and each op that is still to be placed and has a tensor on another mesh.
mlir::LogicalResult checkPlacedParts(mlir::func::FuncOp function, const Mesh &mesh);

/// The wishes for the results of an op, one per result; empty where it has none.
llvm::SmallVector<Sharding> wishesOf(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_PLACEDPARTS_H
