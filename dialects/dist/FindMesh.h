// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mesh that a function is for.

#ifndef SHARDC_DIALECTS_DIST_FINDMESH_H
#define SHARDC_DIALECTS_DIST_FINDMESH_H

#include "dialects/dist/Dist.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>

namespace shardc::dist {

/// The mesh of a function's module, else the one that its layouts, extents or groups name, else a
/// line of as many ranks as its groups list. Nothing where no group's ranks are known.
std::optional<Mesh> findMesh(mlir::FunctionOpInterface function);

/// Whether the module around an op names the mesh, in its `dist.mesh` or `dist.meshes`.
bool isNamedMesh(mlir::Operation *op, MeshAttr mesh);

/// All ranks that run a program: those of its `dist.mesh` and of its `dist.meshes`. That is the
/// mesh itself where no other has further ranks, else a line of all ranks, ascending. Nothing for
/// a module without a mesh.
std::optional<Mesh> findWorld(mlir::ModuleOp module);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_FINDMESH_H
