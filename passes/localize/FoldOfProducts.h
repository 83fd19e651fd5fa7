// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_LOCALIZE_FOLDOFPRODUCTS_H
#define SHARDC_PASSES_LOCALIZE_FOLDOFPRODUCTS_H

#include "passes/localize/Halos.h"
#include "passes/localize/Models.h"

#include "dialects/aten/Spatial.h"

namespace shardc {

/// The present op, a fold of products as transposed convolutions and derivatives of convolutions
/// are, of this rank's part of the image alone. What other ranks make for it this rank makes
/// itself: it fetches the elements that these products are made of, where that is less than the
/// sums that they would send. Fails silently where it is not, and where the op is something else.
LocalValues foldOfFetched(Localizer &localizer, mlir::OpBuilder &builder, aten::FoldOp op,
                          llvm::ArrayRef<HaloDim> dims);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_FOLDOFPRODUCTS_H
