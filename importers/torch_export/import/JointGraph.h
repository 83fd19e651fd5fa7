// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_JOINTGRAPH_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_JOINTGRAPH_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Value.h"

namespace shardc::torch_export {

/// A joint graph has results of kind "gradient". PyTorch writes its backward behind its forward, so
/// that what stands behind the last op that another result needs gets a location of the backward.
/// `attributes`: those of the results. Nothing changes where no result is a gradient.
void markBackward(mlir::Block &block, llvm::ArrayRef<mlir::Value> results,
                  llvm::ArrayRef<mlir::DictionaryAttr> attributes);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_JOINTGRAPH_H
