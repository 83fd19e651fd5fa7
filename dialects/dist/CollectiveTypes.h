// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the types of a collective's results follow from.

#ifndef SHARDC_DIALECTS_DIST_COLLECTIVETYPES_H
#define SHARDC_DIALECTS_DIST_COLLECTIVETYPES_H

#include "dialects/dist/Dist.h"

namespace shardc::dist {

/// Moves index operands that are constants into the op's extent lists; a constant full extent goes
/// into the type of the result.
void foldConstantExtents(CollectiveOpInterface op);

/// The type of what result `tensor` delivers to the rank at `position` of its group, where the op's
/// operands and extents say more than the result's type does now. Without a position, what holds
/// for every rank.
mlir::RankedTensorType inferDeliveredType(CollectiveOpInterface op, unsigned tensor,
                                          std::optional<int64_t> position);

/// Gives result `tensor` a delivered type: as it is, or as a future where the op is asynchronous.
void setDeliveredType(CollectiveOpInterface op, unsigned tensor, mlir::RankedTensorType type);

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_COLLECTIVETYPES_H
