// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What steps of a redistribution cost.
#ifndef SHARDC_PASSES_REDISTRIBUTE_CORE_STEPCOST_H
#define SHARDC_PASSES_REDISTRIBUTE_CORE_STEPCOST_H

#include "dialects/sharding/RedistributeStep.h"
#include "passes/cost/core/Transfer.h"

namespace shardc {

/// Sizes that costs are computed with.
struct CostOptions {
  /// Stands in for a dim whose size is not known.
  int64_t assumedDynamicSize = cost::kAssumedDynamicSize;
};

/// Bytes that a rank holds in `layout`, the largest of all ranks.
double localBytes(const Layout &layout, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options = {});

/// Bytes that a rank sends or receives in one step, the most of any rank; 0 for a local step. By
/// the ring algorithms: for even shards the table of semantics.md. Uneven shards count as they are:
/// in a gather a rank gets all but the smallest of the pieces past it. An exchange on a mesh of
/// more than 64 devices is estimated from the devices at the begin and the end of each axis.
double bytesMoved(const RedistributeStep &step, std::span<const int64_t> shape, int64_t elementSize,
                  const CostOptions &options = {});

/// Microseconds of a step; 0 for a local one.
double stepUs(const RedistributeStep &step, double bytes, const cost::LinkCosts &links);

/// Bytes that some rank needs in `to` and lacks in `from`, the most of any rank: no sequence of
/// steps moves less where neither layout's partial axes become others.
double missingBytes(const Layout &from, const Layout &to, std::span<const int64_t> shape,
                    int64_t elementSize, const CostOptions &options = {});

} // namespace shardc

#endif // SHARDC_PASSES_REDISTRIBUTE_CORE_STEPCOST_H
