// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Transition.h"

namespace shardc {

double transitionBytes(const AxisPlacement &from, const AxisPlacement &to, double bytes,
                       int64_t n) {
  double gather = static_cast<double>(n - 1) / static_cast<double>(n) * bytes;
  bool toReplicated = to.kind == PlacementKind::Replicate || to.kind == PlacementKind::Open;
  if (from.isPartial()) {
    if (to.isPartial() && to.reduction == from.reduction)
      return 0;
    return to.isShard() ? gather : 2 * gather;
  }
  if (!from.isShard())
    return 0; // slices and partial values of what every rank has are local
  if (to.isShard()) {
    if (to.dim == from.dim)
      return from.samePlacement(to) ? 0 : gather;
    return gather / static_cast<double>(n);
  }
  if (to.isPartial() && to.reduction == Reduction::Sum)
    return 0; // a block of zeros around the shard
  return toReplicated || to.isPartial() ? gather : 0;
}

} // namespace shardc
