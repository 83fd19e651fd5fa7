// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops slide a window over the same image as another, of which one exchange brings what all of
// them cover.
#ifndef SHARDC_PASSES_LOCALIZE_WINDOWEDIMAGES_H
#define SHARDC_PASSES_LOCALIZE_WINDOWEDIMAGES_H

#include "passes/localize/Halos.h"

namespace shardc {

/// The dim of operand 0 along which a placed op with windows over it fetches first what its
/// positions cover (see coveredImage), without what that is. Nothing for any other op.
std::optional<HaloDim> firstHaloDim(mlir::Operation *op);

/// The same of every other op over the present op's operand 0 that fetches along this dim first,
/// with what these cover, and of what is made again of it (RemadeBorders.h).
llvm::SmallVector<HaloDim> halosBeside(Localizer &localizer, const HaloDim &dim);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_WINDOWEDIMAGES_H
