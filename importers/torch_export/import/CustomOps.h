// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of operators that the user has registered, as `aten.custom`.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CUSTOMOPS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CUSTOMOPS_H

#include "importers/CustomOp.h"
#include "importers/torch_export/import/Environment.h"

namespace shardc::torch_export {

/// Which of them a node is; null for none.
const CustomOp *findCustomOp(llvm::ArrayRef<CustomOp> ops, const Node &node);

/// Imports a node as a registered op and names its results. The padding of its windows becomes ops
/// in front of it, and names in windows the integers that the node has as arguments. Fails after a
/// diagnostic at `loc`.
mlir::LogicalResult importCustomOp(mlir::OpBuilder &builder, Environment &environment,
                                   const CustomOp &op, const Node &node, mlir::Location loc);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CUSTOMOPS_H
