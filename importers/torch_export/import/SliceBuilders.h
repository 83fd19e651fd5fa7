// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Small pieces of IR on parts of tensors.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SLICEBUILDERS_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SLICEBUILDERS_H

#include "mlir/IR/Builders.h"

namespace shardc::torch_export {

/// The sizes of a tensor, dynamic ones as `aten.sym_size`.
llvm::SmallVector<mlir::OpFoldResult> sizesOf(mlir::OpBuilder &builder, mlir::Location loc,
                                              mlir::Value tensor);

mlir::OpFoldResult addSizes(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult lhs,
                            mlir::OpFoldResult rhs);
mlir::OpFoldResult multiplySizes(mlir::OpBuilder &builder, mlir::Location loc,
                                 mlir::OpFoldResult lhs, mlir::OpFoldResult rhs);

/// The same elements in row-major order in another shape.
mlir::FailureOr<mlir::Value> buildView(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::Value tensor,
                                       llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// Repeats dims of size 1 and adds dims in front, to `sizes`.
mlir::FailureOr<mlir::Value> buildExpand(mlir::OpBuilder &builder, mlir::Location loc,
                                         mlir::Value tensor,
                                         llvm::ArrayRef<mlir::OpFoldResult> sizes);

/// Elements [start, end) along a dim; an end of null is the dim's size.
mlir::FailureOr<mlir::Value> buildSlice(mlir::OpBuilder &builder, mlir::Location loc,
                                        mlir::Value tensor, int64_t dim, mlir::OpFoldResult start,
                                        mlir::OpFoldResult end);

/// `tensor` with the elements from `start` on along `dim` replaced by `part`.
mlir::FailureOr<mlir::Value> buildReplaceSlice(mlir::OpBuilder &builder, mlir::Location loc,
                                               mlir::Value tensor, int64_t dim,
                                               mlir::OpFoldResult start, mlir::Value part);

/// `tensor` with every `step`-th element from `start` on along `dim` replaced by those of `part`.
/// Both sizes along `dim` are static.
mlir::FailureOr<mlir::Value> buildReplaceSteps(mlir::OpBuilder &builder, mlir::Location loc,
                                               mlir::Value tensor, int64_t dim, int64_t start,
                                               int64_t step, mlir::Value part);

/// `source`, which is written over all of `tensor` and has its shape and element type.
mlir::FailureOr<mlir::Value> buildOverwritten(mlir::OpBuilder &builder, mlir::Location loc,
                                              mlir::Value tensor, mlir::Value source);

/// `tensor` cast to an element type; itself if it has that.
mlir::FailureOr<mlir::Value> buildCast(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::Value tensor, mlir::Type elementType);

/// Puts in a dim of size 1.
mlir::FailureOr<mlir::Value> buildUnsqueeze(mlir::OpBuilder &builder, mlir::Location loc,
                                            mlir::Value tensor, int64_t dim);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SLICEBUILDERS_H
