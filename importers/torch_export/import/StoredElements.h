// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stored tensors whose elements the compiler knows.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STOREDELEMENTS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STOREDELEMENTS_H

#include "support/archive/TensorStore.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace shardc::torch_export {

/// A stored tensor as an attribute; null where it has no data, or not those of the type.
mlir::DenseElementsAttr readElements(const StoredTensor &tensor, mlir::RankedTensorType type);

/// Gives arguments of a module, which may be null, of kind "constant" their elements
/// (dialects/aten/KnownElements.h), where a mask may be made of them: bools and integers, and
/// floats for pairs of positions. Buffers whose names match one of these patterns become constants.
/// Null after errors.
mlir::OwningOpRef<mlir::ModuleOp> withElements(mlir::OwningOpRef<mlir::ModuleOp> module,
                                               const TensorStore &store,
                                               llvm::ArrayRef<std::string> fixedBuffers);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_STOREDELEMENTS_H
