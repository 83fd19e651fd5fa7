// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of a function that a device runs where tensors are on several meshes: a rank outside of
// a mesh holds empty tensors there and takes part in none of its collectives (L5).

#ifndef SHARDC_PASSES_SPECIALIZE_MESHPARTS_H
#define SHARDC_PASSES_SPECIALIZE_MESHPARTS_H

#include "passes/specialize/FunctionSpecializer.h"

namespace shardc {

/// The meshes that a function of the local or scheduled stage mentions and that some device is
/// outside of.
std::vector<dist::MeshAttr> partialMeshes(mlir::func::FuncOp function, Devices &devices);

/// Classes whose devices are in the same ones of these meshes.
std::deque<DeviceClass> splitByMeshes(std::deque<DeviceClass> classes,
                                      llvm::ArrayRef<dist::MeshAttr> meshes, Devices &devices);

/// Leaves of the function what the devices of a class run. Collectives get the number that they
/// have in the whole function (`dist.ordinal`). Fails, with an error for each op, where an op that
/// is left needs what only ranks of a mesh have that these devices are outside of.
mlir::LogicalResult keepPart(mlir::func::FuncOp function, llvm::ArrayRef<dist::MeshAttr> meshes,
                             const DeviceClass &devices, Devices &all);

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_MESHPARTS_H
