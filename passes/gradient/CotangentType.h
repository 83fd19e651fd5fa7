// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_GRADIENT_COTANGENTTYPE_H
#define SHARDC_PASSES_GRADIENT_COTANGENTTYPE_H

#include "dialects/dist/Dist.h"

namespace shardc {

/// The type of the cotangent of a value: that of the value (G2), but for its layout on an axis
/// where the value is the product of what the ranks hold. No value becomes the factors of a
/// product, so the cotangent is replicated there.
inline mlir::RankedTensorType cotangentType(mlir::RankedTensorType type) {
  dist::LayoutAttr attribute = dist::getLayout(type);
  if (!attribute)
    return type;
  Layout layout = attribute.getValue();
  for (unsigned axis : layout.partialAxes())
    if (layout.placements[axis].reduction == Reduction::Prod)
      layout = layout.with(axis, Placement::replicate());
  return mlir::RankedTensorType::get(type.getShape(), type.getElementType(),
                                     dist::LayoutAttr::get(type.getContext(), layout));
}

} // namespace shardc

#endif // SHARDC_PASSES_GRADIENT_COTANGENTTYPE_H
