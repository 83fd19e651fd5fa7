// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that are known by name only, as `aten.opaque`.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H

#include "importers/torch_export/import/Environment.h"

namespace shardc::torch_export {

/// Imports a node as an opaque op and names its results. Operators whose name ends in one
/// underscore update their tensor arguments; views of the table are views. Fails with a diagnostic
/// at `loc` only if an argument is not available.
mlir::LogicalResult importOpaque(mlir::OpBuilder &builder, Environment &environment,
                                 const Node &node, mlir::Location loc);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H
