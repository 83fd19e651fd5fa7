// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution as a matrix product of its weight with the windows of the image.
#ifndef SHARDC_DIALECTS_ATEN_CONVOLUTIONASPRODUCT_H
#define SHARDC_DIALECTS_ATEN_CONVOLUTIONASPRODUCT_H

#include "dialects/aten/Window.h"

#include "mlir/IR/Builders.h"

namespace shardc::aten {

/// aten.windows of an image.
mlir::Value buildWindows(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value image,
                         llvm::ArrayRef<Window> windows);

/// Its adjoint, aten.fold: the image of these spatial sizes.
mlir::Value buildFold(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value columns,
                      llvm::ArrayRef<mlir::OpFoldResult> sizes, llvm::ArrayRef<Window> windows);

/// The convolution of `input` [batch, channels, spatial...] and `weight` [out, channels of a group,
/// kernel...], plus `bias` [out] (may be null). `groups` and `outOfGroup`, the
/// output channels of each, may be index values; the kernel's sizes are those of `windows`. Built
/// of windows, view, matmul and add; the result's type says what is known from the operands.
mlir::Value buildConvolutionAsProduct(mlir::OpBuilder &builder, mlir::Location loc,
                                      llvm::ArrayRef<Window> windows, mlir::Value input,
                                      mlir::Value weight, mlir::Value bias,
                                      mlir::OpFoldResult groups, mlir::OpFoldResult outOfGroup);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_CONVOLUTIONASPRODUCT_H
