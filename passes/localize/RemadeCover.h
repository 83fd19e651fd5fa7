// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An image under windows, of which ranks make rows of others again (RemadeBorders.h).
#ifndef SHARDC_PASSES_LOCALIZE_REMADECOVER_H
#define SHARDC_PASSES_LOCALIZE_REMADECOVER_H

#include "passes/localize/RemadeBorders.h"

namespace shardc {

/// What the present op's positions cover of its operand 0, of which rows are made again: `local` is
/// what this rank has of that, and `sizes` become those of what is covered.
mlir::Value remadeCover(Localizer &localizer, mlir::OpBuilder &builder, const RemadeBorder &border,
                        const HaloDim &dim, mlir::Value local, double fill,
                        llvm::SmallVectorImpl<mlir::OpFoldResult> &sizes);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_REMADECOVER_H
