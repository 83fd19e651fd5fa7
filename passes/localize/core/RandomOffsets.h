// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the shards of a tensor of random numbers begin in the stream of a generator, as PyTorch's
// OffsetBasedRNGTracker has it (semantics.md N1, mode `dtensor`). Several axes on one dim count in
// the order of the mesh, whatever the order of their splits.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_RANDOMOFFSETS_H
#define SHARDC_PASSES_LOCALIZE_CORE_RANDOMOFFSETS_H

#include "dialects/sharding/RandomStep.h"
#include "passes/localize/core/LocalIndexing.h"

namespace shardc {

/// How far an op that draws `numbers` numbers moves the offset.
inline int64_t randomAdvance(int64_t numbers) {
  return ceilDiv(numbers, kRandomStep) * kRandomStep;
}

/// The row-major number of the shard at a coordinate, among those of a tensor with these splits.
int64_t shardNumber(const Mesh &mesh, const std::vector<DimSplit> &dims,
                    const Coordinate &coordinate);

/// The split that decides the extent of a dim of the first shard: that of the mesh's last axis
/// among the dim's, alone, also where this is not the true first shard. Null: the whole dim.
const AxisSplit *lastSplit(const DimSplit &dim);

/// How far behind the op's offset the numbers of the shard at a coordinate begin.
int64_t randomStart(const Mesh &mesh, const std::vector<SplitDim> &dims,
                    const Coordinate &coordinate);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_RANDOMOFFSETS_H
