// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Split.h"

#include <algorithm>
#include <numeric>

namespace shardc {

/// Product of the sizes of factors [begin, end) of a dim; kDynamic where one is unknown.
static int64_t product(const ShardingRule &rule, const DimFactors &dim, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t i = begin; i < end; ++i) {
    int64_t size = rule.factors[dim[i]].size;
    if (size == kDynamic)
      return kDynamic;
    result *= size;
  }
  return result;
}

/// a * b, or nothing where it does not fit 63 bits.
static std::optional<int64_t> multiply(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

static std::optional<int64_t> leastCommonMultiple(int64_t a, int64_t b) {
  return multiply(a / std::gcd(a, b), b);
}

/// Whether `split` leaves at least two units to share out in a range of n elements, and its numbers
/// divide n.
static bool fits(const Split &split, int64_t n) {
  std::optional<int64_t> unit = multiply(split.blocks, split.granule);
  if (!unit)
    return false;
  if (n == kDynamic)
    return true;
  return n % *unit == 0 && (split.fixed || n / *unit >= 2);
}

//===-- Blocks of unequal sizes
//--------------------------------------------------------------------===//

/// The blocks of a split of a range of n elements; nothing where they have explicit sizes.
static std::optional<std::vector<SplitBlock>> blocksOf(const Split &split, int64_t n) {
  if (split.isUnequal())
    return split.unequal();
  if (split.sizes || n == kDynamic || n % split.blocks || n / split.blocks % split.granule)
    return std::nullopt;
  return std::vector<SplitBlock>(static_cast<size_t>(split.blocks),
                                 {n / split.blocks, split.granule});
}

/// Whether there is anything to share out.
static bool fits(const std::vector<SplitBlock> &blocks) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const SplitBlock &block) { return block.size / block.granule >= 2; });
}

/// The coarsest blocks whose borders are those of both; nothing where granules exclude each other.
static std::optional<std::vector<SplitBlock>> mergeBlocks(const std::vector<SplitBlock> &a,
                                                          const std::vector<SplitBlock> &b) {
  if (sizeOf(a) != sizeOf(b))
    return std::nullopt;
  std::vector<SplitBlock> merged;
  int64_t leftOfA = 0, leftOfB = 0;
  for (auto inA = a.begin(), inB = b.begin(); inA != a.end() && inB != b.end();) {
    leftOfA = leftOfA ? leftOfA : inA->size;
    leftOfB = leftOfB ? leftOfB : inB->size;
    int64_t size = std::min(leftOfA, leftOfB);
    std::optional<int64_t> granule = leastCommonMultiple(inA->granule, inB->granule);
    if (!granule || size % *granule)
      return std::nullopt;
    if (size > 0)
      merged.push_back({size, *granule});
    leftOfA -= size;
    leftOfB -= size;
    inA += leftOfA == 0;
    inB += leftOfB == 0;
  }
  return merged;
}

/// The blocks in [begin, end) of their range, as a split; nothing where one is across its borders.
static std::optional<Split> restrictBlocks(const std::vector<SplitBlock> &blocks, int64_t begin,
                                           int64_t end, bool fixed, SizesPool &pool) {
  std::vector<SplitBlock> inside;
  int64_t offset = 0;
  for (const SplitBlock &block : blocks) {
    int64_t next = offset + block.size;
    if (begin < next && offset < end) {
      if (offset < begin || end < next)
        return std::nullopt;
      inside.push_back(block);
    }
    offset = next;
  }
  Split split{1, 1, nullptr, fixed};
  if (!inside.empty() && std::all_of(inside.begin(), inside.end(),
                                     [&](const SplitBlock &b) { return b == inside.front(); })) {
    split.blocks = static_cast<int64_t>(inside.size());
    split.granule = inside.front().granule;
  } else if (!inside.empty()) {
    return Split::intoBlocks(inside, fixed, pool);
  }
  return split;
}

std::optional<FactorSplit> projectToRange(const RuleDim &dim, const Split &split,
                                          std::span<const int64_t> borders, SizesPool &pool) {
  const FactorPart *part = dim.part();
  if (!part)
    return std::nullopt;
  std::optional<std::vector<SplitBlock>> ofDim = blocksOf(split, part->size);
  if (!ofDim || sizeOf(*ofDim) != part->size)
    return std::nullopt;
  std::set<int64_t> cuts(borders.begin(), borders.end());
  for (const FactorPart &other : dim.parts)
    if (other.factor == part->factor)
      cuts.insert({other.begin, other.begin + other.size});
  int64_t begin = *cuts.begin(), end = *cuts.rbegin();
  std::vector<SplitBlock> cut, given;
  for (int64_t last = begin; int64_t next : cuts) {
    if (next != last)
      cut.push_back({next - last, 1});
    last = next;
  }
  given.push_back({part->begin - begin, 1});
  given.insert(given.end(), ofDim->begin(), ofDim->end());
  given.push_back({end - part->begin - part->size, 1});
  std::erase_if(given, [](const SplitBlock &block) { return block.size == 0; });
  std::optional<std::vector<SplitBlock>> merged = mergeBlocks(given, cut);
  bool isWhole = part->begin == begin && part->size == end - begin;
  if (!merged || (split.fixed ? isWhole && *merged != *ofDim : !fits(*merged)))
    return std::nullopt;
  return FactorSplit{part->factor, Split::intoBlocks(*merged, split.fixed && isWhole, pool)};
}

/// Unequal blocks of a dim, as those of its outermost factor that can be sharded and that they fit.
static std::optional<FactorSplit> projectBlocks(const RuleDim &dim, const Split &split,
                                                SizesPool &pool,
                                                std::span<const unsigned> avoided) {
  const DimFactors &factors = dim.factors();
  for (size_t j = 0; j < factors.size(); ++j) {
    const Factor &factor = dim.rule.factors[factors[j]];
    int64_t inner = product(dim.rule, factors, j + 1, factors.size());
    // An outer factor would have to repeat the blocks.
    if (product(dim.rule, factors, 0, j) != 1 || inner <= 0)
      return std::nullopt;
    if (!factor.canShard() || factor.inOnePiece || factor.kind == FactorKind::Neighbouring ||
        std::find(avoided.begin(), avoided.end(), factors[j]) != avoided.end())
      continue;
    std::vector<SplitBlock> blocks = split.unequal();
    bool isWhole = true;
    for (SplitBlock &block : blocks) {
      std::optional<int64_t> granule = leastCommonMultiple(block.granule, inner);
      isWhole &=
          granule && block.size % *granule == 0 && (!split.fixed || *granule == block.granule);
      if (isWhole)
        block = {block.size / inner, *granule / inner};
    }
    if (!isWhole || (!split.fixed && !fits(blocks)))
      continue;
    return FactorSplit{factors[j], Split::intoBlocks(blocks, split.fixed, pool)};
  }
  return std::nullopt;
}

static std::vector<int64_t> chunkSizes(int64_t size, size_t count) {
  AxisSplit split;
  split.count = static_cast<int64_t>(count);
  return split.extents(size);
}

/// Shards of another range of `size` elements, whose borders are where those of these shards are,
/// in proportion; null where that is not known. Chunks stay chunks, which a tensor of that size has
/// where nothing is said.
static Sizes inProportion(const std::vector<int64_t> &sizes, int64_t size, SizesPool &pool) {
  int64_t whole = std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
  if (size == kDynamic || whole <= 0)
    return nullptr;
  if (sizes == chunkSizes(whole, sizes.size()))
    return pool.get(chunkSizes(size, sizes.size()));
  std::vector<int64_t> result;
  int64_t border = 0, last = 0;
  for (int64_t shard : sizes) {
    border += shard;
    auto next = static_cast<int64_t>((static_cast<__int128>(border) * size * 2 + whole) /
                                     (static_cast<__int128>(whole) * 2));
    result.push_back(next - last);
    last = next;
  }
  return pool.get(std::move(result));
}

//===-- All splits
//---------------------------------------------------------------------------------===//

std::optional<FactorSplit> projectToFactor(const RuleDim &ruleDim, const Split &split,
                                           SizesPool &pool, std::span<const unsigned> avoided) {
  if (split.isUnequal())
    return ruleDim.part() ? projectToRange(ruleDim, split, {}, pool)
                          : projectBlocks(ruleDim, split, pool, avoided);
  const ShardingRule &rule = ruleDim.rule;
  const DimFactors &dim = ruleDim.factors();
  for (size_t j = 0; j < dim.size(); ++j) {
    const Factor &factor = rule.factors[dim[j]];
    int64_t outer = product(rule, dim, 0, j), inner = product(rule, dim, j + 1, dim.size());
    if (outer <= 0)
      return std::nullopt;
    if (!factor.canShard() || std::find(avoided.begin(), avoided.end(), dim[j]) != avoided.end())
      continue;
    if (inner <= 0)
      return std::nullopt;
    std::optional<int64_t> blocks = leastCommonMultiple(split.blocks, outer);
    std::optional<int64_t> granule =
        split.sizes ? std::optional<int64_t>(inner) : leastCommonMultiple(split.granule, inner);
    if (!blocks || !granule)
      continue;
    Split onFactor{*blocks / outer, *granule / inner, nullptr, split.fixed};
    if (factor.inOnePiece && onFactor.blocks != 1)
      continue;
    if (split.fixed && (*blocks != split.blocks || (!split.sizes && *granule != split.granule)))
      continue;
    if (split.sizes) {
      std::vector<int64_t> sizes = *split.sizes;
      if (std::any_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size % inner; }))
        continue;
      for (int64_t &size : sizes)
        size /= inner;
      onFactor.sizes = pool.get(std::move(sizes));
    }
    // The tensors with a neighbouring factor have it in several sizes. Extents of one are in
    // proportion those of another; granules are not.
    if (factor.kind == FactorKind::Neighbouring && ruleDim.size != factor.size) {
      if (onFactor.granule != 1 || (onFactor.sizes && dim.size() != 1))
        continue;
      // How a small part is shared out, such as what a circular pad adds, says nothing of the
      // whole.
      bool isSmallPart = factor.hasParts() && 2 * ruleDim.size < factor.size;
      if (onFactor.sizes) {
        if (isSmallPart)
          continue;
        onFactor.sizes = inProportion(*onFactor.sizes, factor.size, pool);
        if (!onFactor.sizes)
          continue;
      }
    }
    if (fits(onFactor, factor.size))
      return FactorSplit{dim[j], onFactor};
  }
  return std::nullopt;
}

std::optional<Split> liftToDim(const RuleDim &ruleDim, const FactorSplit &split, SizesPool &pool) {
  const ShardingRule &rule = ruleDim.rule;
  const DimFactors &dim = ruleDim.factors();
  const FactorPart *part = ruleDim.part();
  if (split.split.isUnequal() && part && part->factor == split.factor)
    return restrictBlocks(split.split.unequal(), part->begin, part->begin + part->size,
                          split.split.fixed, pool);
  size_t j = static_cast<size_t>(std::find(dim.begin(), dim.end(), split.factor) - dim.begin());
  if (j == dim.size())
    return std::nullopt;
  int64_t outer = product(rule, dim, 0, j), inner = product(rule, dim, j + 1, dim.size());
  if (outer <= 0 || inner <= 0)
    return std::nullopt;
  Split result = split.split;
  if (result.isUnequal()) {
    if (outer != 1)
      return std::nullopt;
    std::vector<SplitBlock> blocks = result.unequal();
    for (SplitBlock &block : blocks)
      block = {block.size * inner, block.granule * inner};
    return Split::intoBlocks(blocks, result.fixed, pool);
  }
  std::optional<int64_t> blocks = multiply(result.blocks, outer);
  std::optional<int64_t> granule = multiply(result.granule, inner);
  if (!blocks || !granule)
    return std::nullopt;
  result.blocks = *blocks;
  if (rule.factors[split.factor].kind == FactorKind::Neighbouring &&
      ruleDim.size != rule.factors[split.factor].size) {
    if (result.granule != 1 || (result.sizes && dim.size() != 1))
      return std::nullopt;
    if (result.sizes) {
      result.sizes = inProportion(*result.sizes, ruleDim.size, pool);
      return result.sizes ? std::optional(result) : std::nullopt;
    }
  }
  if (!result.sizes) {
    result.granule = *granule;
  } else if (inner != 1) {
    std::vector<int64_t> sizes = *result.sizes;
    for (int64_t &size : sizes)
      size *= inner;
    result.sizes = pool.get(std::move(sizes));
  }
  return result;
}

/// Where one of them has unequal blocks.
static std::optional<Split> mergeUnequal(const Split &a, const Split &b, SizesPool &pool) {
  int64_t n = sizeOf(a.isUnequal() ? a.unequal() : b.unequal());
  std::optional<std::vector<SplitBlock>> ofA = blocksOf(a, n), ofB = blocksOf(b, n);
  if (!ofA || !ofB)
    return std::nullopt;
  std::optional<std::vector<SplitBlock>> merged = mergeBlocks(*ofA, *ofB);
  bool isFixed = a.fixed || b.fixed;
  if (!merged || (isFixed ? *merged != (a.fixed ? *ofA : *ofB) : !fits(*merged)))
    return std::nullopt;
  return Split::intoBlocks(*merged, isFixed, pool);
}

std::optional<Split> mergeSplits(const Split &a, const Split &b, int64_t n, SizesPool &pool) {
  if (a.sameExtents(b))
    return a.fixed ? a : b;
  if (a.fixed && b.fixed)
    return std::nullopt;
  if (a.isUnequal() || b.isUnequal())
    return mergeUnequal(a, b, pool);
  if (a.fixed || b.fixed) {
    const Split &fixed = a.fixed ? a : b, &open = a.fixed ? b : a;
    bool whole = fixed.granule % open.granule == 0;
    if (fixed.sizes)
      whole = std::all_of(fixed.sizes->begin(), fixed.sizes->end(),
                          [&](int64_t size) { return size % open.granule == 0; });
    return whole && fixed.blocks % open.blocks == 0 ? std::optional<Split>(fixed) : std::nullopt;
  }
  std::optional<int64_t> blocks = leastCommonMultiple(a.blocks, b.blocks);
  std::optional<int64_t> granule = leastCommonMultiple(a.granule, b.granule);
  if (!blocks || !granule)
    return std::nullopt;
  Split merged{*blocks, *granule, nullptr, false};
  return fits(merged, n) ? std::optional<Split>(merged) : std::nullopt;
}

/// What each coordinate has of one block.
static std::vector<int64_t> shardsOf(const Split &split, int64_t size, int64_t n) {
  if (split.sizes)
    return *split.sizes;
  int64_t units = size / split.blocks / split.granule, chunk = (units + n - 1) / n;
  std::vector<int64_t> shards;
  for (int64_t i = 0; i < n; ++i)
    shards.push_back(std::clamp<int64_t>(units - i * chunk, 0, chunk) * split.granule);
  return shards;
}

/// The intervals that a coordinate has.
static std::vector<Run> runsOf(const Split &split, int64_t size, int64_t n, int64_t coordinate) {
  DimSplit alone{{{0, n, split.blocks, split.granule, {}}}};
  if (split.sizes)
    alone.axes.front().sizes = *split.sizes;
  return alone.runs(size, std::span(&coordinate, 1));
}

bool sameShards(const Split &a, const Split &b, int64_t size, int64_t n) {
  if (a.sameExtents(b))
    return true;
  if (a.isUnequal() || b.isUnequal()) {
    bool same = true;
    for (int64_t r = 0; r < n && same; ++r)
      same = runsOf(a, size, n, r) == runsOf(b, size, n, r);
    return same;
  }
  return a.blocks == b.blocks && size != kDynamic && shardsOf(a, size, n) == shardsOf(b, size, n);
}

} // namespace shardc
