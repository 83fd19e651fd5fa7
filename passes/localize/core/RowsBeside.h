// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that ranks need of a dim besides those that they have.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_ROWSBESIDE_H
#define SHARDC_PASSES_LOCALIZE_CORE_ROWSBESIDE_H

#include "dialects/sharding/DimSplit.h"

#include <span>
#include <vector>

namespace shardc {

/// From the first row of either to the last.
Run hullOf(Run a, Run b);

/// For each rank.
struct RowsBeside {
  std::vector<Run> before, behind;

  /// The most rows of a rank.
  int64_t most() const;
};

/// What `needed` has in front of `own` and behind it. What a rank needs that has no rows is all
/// before these.
RowsBeside rowsBeside(std::span<const Run> own, std::span<const Run> needed);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_ROWSBESIDE_H
