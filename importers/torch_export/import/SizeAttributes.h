// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Symbolic sizes as attributes of the dist dialect.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIZEATTRIBUTES_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIZEATTRIBUTES_H

#include "importers/torch_export/program/Program.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Support/LLVM.h"

namespace shardc::torch_export {

/// `dist.sizes` of a tensor with these metadata; null if all its sizes are constants, or one is an
/// expression that #dist.size does not have (max, min).
mlir::ArrayAttr makeSizes(mlir::MLIRContext *context, const TensorMeta &meta);

/// `dist.symbols`: the symbols that occur in the sizes of the program's inputs and outputs, with
/// their ranges. Null if there are none; fails with a diagnostic for an empty range.
mlir::FailureOr<mlir::ArrayAttr> makeSymbols(mlir::MLIRContext *context,
                                             const ExportedProgram &program);

/// `dist.constraints`: the conditions on sizes that the export relies on, beside ranges and equal
/// symbols. Null if there are none. One that is not integer arithmetic on input sizes gets a remark
/// at `file`: it is not checked.
mlir::ArrayAttr makeConstraints(mlir::Location file, const ExportedProgram &program);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SIZEATTRIBUTES_H
