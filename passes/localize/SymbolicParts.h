// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slices, splits, joins, pads and reversals along sharded dims of symbolic size: what a rank lacks
// of its part comes in an exchange of intervals (IntervalExchange.h), one for each operand.
#ifndef SHARDC_PASSES_LOCALIZE_SYMBOLICPARTS_H
#define SHARDC_PASSES_LOCALIZE_SYMBOLICPARTS_H

#include "passes/localize/Models.h"

namespace shardc {

LocalValues sliceSymbolic(Localizer &localizer, mlir::OpBuilder &builder, aten::SliceOp op,
                          mlir::Value local);
LocalValues splitSymbolic(Localizer &localizer, mlir::OpBuilder &builder, aten::SplitWithSizesOp op,
                          mlir::Value local);
LocalValues joinSymbolic(Localizer &localizer, mlir::OpBuilder &builder, aten::CatOp op,
                         mlir::ValueRange operands);
/// One dim of operand 0, as far as the others are done: `sizes` are those of `local`, and become
/// those of the result.
mlir::Value padSymbolic(Localizer &localizer, mlir::OpBuilder &builder, aten::ConstantPadNdOp op,
                        int64_t dim, mlir::Value local,
                        llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);
mlir::Value flipSymbolic(Localizer &localizer, mlir::OpBuilder &builder, int64_t dim,
                         mlir::Value local, llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_SYMBOLICPARTS_H
