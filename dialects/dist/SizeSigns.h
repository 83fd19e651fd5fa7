// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which numbers that programs compute from symbols are sizes: what calculates with them, and what
// verifies that, ask here.
#ifndef SHARDC_DIALECTS_DIST_SIZESIGNS_H
#define SHARDC_DIALECTS_DIST_SIZESIGNS_H

#include "dialects/dist/Dist.h"

namespace shardc::dist {

/// Whether an extent may be less than 0: an expression with a difference in it may be a bound from
/// the end of a dim. Symbols are sizes, and so are shares.
inline bool mayBeNegative(ExtentsAttr extents) {
  bool isLess = false;
  if (SizeAttr size = extents.getSize(); size && !extents.getMesh())
    size.getExpr().walk([&](mlir::AffineExpr part) {
      auto number = llvm::dyn_cast<mlir::AffineConstantExpr>(part);
      isLess |= number && number.getValue() < 0;
    });
  return isLess;
}

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_SIZESIGNS_H
