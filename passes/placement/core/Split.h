// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The split of one dim, or one factor, over one mesh axis, apart from what other axes do to it.
//
// A range of N elements is `blocks` equal blocks; each block is split over the axis in units of
// `granule` elements, or by explicit sizes: N = blocks x (units) x granule. Both numbers are about
// the whole range, as if no other axis split it; compose() (Compose.h) nests the splits of several
// axes.
//
// On the factors f1 .. fm of a dim (outer to inner), a split of factor fj is a split of the dim
// with f1 ... f(j-1) more blocks and f(j+1) ... fm times the granule, and the reverse. A split with
// open extents may be made coarser to fit: blocks and granule may be multiplied (L3c).
#ifndef SHARDC_PASSES_PLACEMENT_CORE_SPLIT_H
#define SHARDC_PASSES_PLACEMENT_CORE_SPLIT_H

#include "dialects/sharding/ShardingRule.h"

#include <set>

namespace shardc {

/// Explicit sizes, kept once: equal lists have equal addresses.
using Sizes = const std::vector<int64_t> *;
class SizesPool {
public:
  Sizes get(std::vector<int64_t> sizes) { return &*lists.insert(std::move(sizes)).first; }

private:
  std::set<std::vector<int64_t>> lists;
};

struct Split {
  int64_t blocks = 1;
  int64_t granule = 1;
  Sizes sizes = nullptr; ///< per coordinate, within one block; granule is 1 then
  bool fixed = false;    ///< the extents are given and may not become coarser

  bool sameExtents(const Split &other) const {
    return blocks == other.blocks && granule == other.granule && sizes == other.sizes;
  }
};

struct FactorSplit {
  unsigned factor = 0;
  Split split;
};

/// The factor of a dim that a split of the dim selects: the outermost factor that can be sharded
/// and that the split fits, made coarser where its extents are open. Nothing where no factor fits.
/// Factors among `avoided` are passed over.
std::optional<FactorSplit> projectToFactor(const ShardingRule &rule, const DimFactors &dim,
                                           const Split &split, SizesPool &pool,
                                           std::span<const unsigned> avoided = {});

/// The split of a dim that a split of one of its factors makes; nothing where an outer or inner
/// factor has no known size.
std::optional<Split> liftToDim(const ShardingRule &rule, const DimFactors &dim,
                               const FactorSplit &split, SizesPool &pool);

/// Whether two splits of a range of `size` elements over n coordinates give each of them the same
/// elements, in whatever words. Of a range of unknown size, only those that say the same.
bool sameShards(const Split &a, const Split &b, int64_t size, int64_t n);

/// The coarsest of two splits of a range of `n` elements (kDynamic: unknown); nothing where they
/// exclude each other. Fixed splits stay as they are.
std::optional<Split> mergeSplits(const Split &a, const Split &b, int64_t n);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_SPLIT_H
