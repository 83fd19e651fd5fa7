// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether ranks fetch the elements under windows that cross the borders of their shards, or send
// what they make of their own elements for windows of others (core/BorderExchange.h), for each dim
// of an op.
#ifndef SHARDC_PASSES_LOCALIZE_BORDERPLAN_H
#define SHARDC_PASSES_LOCALIZE_BORDERPLAN_H

#include "passes/localize/Halos.h"
#include "passes/localize/core/BorderExchange.h"

namespace shardc {

/// How ranks come to what windows at their borders make along a dim.
enum class Way {
  Fetch, ///< all elements are fetched
  Sides, ///< on some sides sums are sent, which are made apart, so that nothing else waits for them
  Whole, ///< sums are sent on all sides, of one op over all positions that a rank touches
};

/// A dim, what all ranks have of it, and how they come to the rest.
struct BorderDim {
  const HaloDim *halo;
  std::vector<BorderRank> ranks = {};
  std::vector<BorderNeed> needs = {};
  bool maySum = false;
  Way way = Way::Fetch;
  std::vector<BorderSums> sums = {}; ///< where the way is Sides
};

/// For every one of the present op's halo dims, the way with which the busiest rank gets or gives
/// the fewest numbers, in all exchanges together. Nothing where that is to fetch along all dims, as
/// it is where something else fetches elements of the image as well.
std::optional<llvm::SmallVector<BorderDim>> planBorders(Localizer &localizer,
                                                        llvm::ArrayRef<HaloDim> halos);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_BORDERPLAN_H
