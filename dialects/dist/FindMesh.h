// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mesh that a function is for.

#ifndef SHARDC_DIALECTS_DIST_FINDMESH_H
#define SHARDC_DIALECTS_DIST_FINDMESH_H

#include "dialects/dist/Dist.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>

namespace shardc::dist {

/// The mesh of a function's module, else the one that its layouts, extents or groups name, else a
/// line of as many ranks as its groups list. Nothing where no group's ranks are known.
std::optional<Mesh> findMesh(mlir::FunctionOpInterface function);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_FINDMESH_H
