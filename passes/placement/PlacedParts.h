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

/// Whether some tensor of the function has a layout, so that placement starts from it.
bool isHalfPlaced(mlir::func::FuncOp function);

/// Reports each op that the form `half-placed` does not allow, and each layout on another mesh.
mlir::LogicalResult checkPlacedParts(mlir::func::FuncOp function, const Mesh &mesh);

/// The wishes for the results of an op, one per result; empty where it has none.
llvm::SmallVector<Sharding> wishesOf(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_PLACEDPARTS_H
