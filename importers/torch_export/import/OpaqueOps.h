// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes that are known by name only, as `aten.opaque`.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H

#include "importers/torch_export/import/Environment.h"

namespace shardc::torch_export {

/// An argument that is no tensor; null for tensors, None and symbolic values.
mlir::Attribute asAttribute(mlir::Builder &builder, const Argument &argument);

/// What a node is called with.
struct NodeOperands {
  llvm::SmallVector<mlir::Value> values; ///< tensors, lists included, and sizes
  llvm::SmallVector<std::optional<Storages::Tensor>> tensors; ///< of each value; none of a size
  mlir::NamedAttrList attributes;                             ///< all else that is not None
};
/// Fails with a diagnostic at `loc` only if an argument is not available.
mlir::FailureOr<NodeOperands> collectOperands(mlir::OpBuilder &builder, Environment &environment,
                                              const Node &node, mlir::Location loc);

/// Imports a node as an opaque op and names its results. Operators whose name ends in one
/// underscore update their tensor arguments; views of the table are views. Fails with a diagnostic
/// at `loc` only if an argument is not available.
mlir::LogicalResult importOpaque(mlir::OpBuilder &builder, Environment &environment,
                                 const Node &node, mlir::Location loc);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_OPAQUEOPS_H
