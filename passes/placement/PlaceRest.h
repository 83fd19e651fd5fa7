// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What dist-propagate and dist-place do, for passes that take layouts off a part of a function.
#ifndef SHARDC_PASSES_PLACEMENT_PLACEREST_H
#define SHARDC_PASSES_PLACEMENT_PLACEREST_H

#include "dialects/sharding/Mesh.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Gives a layout to every tensor of a half-placed function that has none, as dist-propagate and
/// dist-place do, without their remarks. Fails after errors were reported.
mlir::LogicalResult placeRest(mlir::func::FuncOp function, const Mesh &mesh);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_PLACEREST_H
