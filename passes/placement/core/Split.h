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
//
// Blocks may also have sizes and granules of their own. Where a dim is a part of a range that ops
// cut or join (FactorPart), a split into such blocks is said of the whole range: that of a dim is
// what falls into its part.
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
  int64_t blocks = 1; ///< 0: of unequal sizes, as AxisSplit has them
  int64_t granule = 1;
  Sizes sizes = nullptr; ///< per coordinate, within one block, granule is 1 then; or the blocks
  bool fixed = false;    ///< the extents are given and may not become coarser

  bool sameExtents(const Split &other) const {
    return blocks == other.blocks && granule == other.granule && sizes == other.sizes;
  }
  bool isUnequal() const { return blocks == 0; }
  /// Of a split into unequal blocks.
  std::vector<SplitBlock> unequal() const { return unequalBlocks(*sizes); }
  static Split intoBlocks(const std::vector<SplitBlock> &blocks, bool fixed, SizesPool &pool) {
    return {0, 1, pool.get(listOfBlocks(blocks)), fixed};
  }
};

/// The split of a factor; with unequal blocks, that of the range which its dims are parts of where
/// the rule says so.
struct FactorSplit {
  unsigned factor = 0;
  Split split;
};

/// A dim of an operand or result.
struct RuleDim {
  const ShardingRule &rule;
  bool isResult;
  size_t slot;
  size_t dim;
  std::span<const FactorPart> parts = {}; ///< of the op
  int64_t size = kDynamic;                ///< of the dim; kDynamic where unknown

  const DimFactors &factors() const { return (isResult ? rule.results : rule.operands)[slot][dim]; }
  /// The part of a range that the dim is; null where the rule says nothing of parts.
  const FactorPart *part() const {
    for (const FactorPart &part : parts)
      if (part.isResult == isResult && part.slot == slot && part.dim == dim)
        return &part;
    return nullptr;
  }
};

/// The factor of a dim that a split of the dim selects: the outermost factor that can be sharded
/// and that the split fits, made coarser where its extents are open. Nothing where no factor fits.
/// Factors among `avoided` are passed over. Unequal blocks of a dim that is a part become those of
/// the whole range.
std::optional<FactorSplit> projectToFactor(const RuleDim &dim, const Split &split, SizesPool &pool,
                                           std::span<const unsigned> avoided = {});

/// The same for a dim that is a part of a range, always as a split of the range, whose borders
/// (ascending, its begin and end among them) are those of blocks.
std::optional<FactorSplit> projectToRange(const RuleDim &dim, const Split &split,
                                          std::span<const int64_t> borders, SizesPool &pool);

/// The split of a dim that a split of one of its factors makes; nothing where an outer or inner
/// factor has no known size, or a block lies across the border of the part that the dim is.
std::optional<Split> liftToDim(const RuleDim &dim, const FactorSplit &split, SizesPool &pool);

/// Whether two splits of a range of `size` elements over n coordinates give each of them the same
/// elements, in whatever words. Of a range of unknown size, only those that say the same.
bool sameShards(const Split &a, const Split &b, int64_t size, int64_t n);

/// The coarsest of two splits of a range of `n` elements (kDynamic: unknown); nothing where they
/// exclude each other. Fixed splits stay as they are.
std::optional<Split> mergeSplits(const Split &a, const Split &b, int64_t n, SizesPool &pool);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_SPLIT_H
