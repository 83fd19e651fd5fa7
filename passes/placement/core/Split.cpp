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

std::optional<FactorSplit> projectToFactor(const ShardingRule &rule, const DimFactors &dim,
                                           const Split &split, SizesPool &pool,
                                           std::span<const unsigned> avoided) {
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
    // The tensors with a neighbouring factor have it in several sizes, and the extents of one are
    // not those of another: each is chunked.
    if (factor.kind == FactorKind::Neighbouring && (onFactor.granule != 1 || onFactor.sizes))
      continue;
    if (fits(onFactor, factor.size))
      return FactorSplit{dim[j], onFactor};
  }
  return std::nullopt;
}

std::optional<Split> liftToDim(const ShardingRule &rule, const DimFactors &dim,
                               const FactorSplit &split, SizesPool &pool) {
  size_t j = static_cast<size_t>(std::find(dim.begin(), dim.end(), split.factor) - dim.begin());
  if (j == dim.size())
    return std::nullopt;
  int64_t outer = product(rule, dim, 0, j), inner = product(rule, dim, j + 1, dim.size());
  if (outer <= 0 || inner <= 0)
    return std::nullopt;
  Split result = split.split;
  std::optional<int64_t> blocks = multiply(result.blocks, outer);
  std::optional<int64_t> granule = multiply(result.granule, inner);
  if (!blocks || !granule)
    return std::nullopt;
  result.blocks = *blocks;
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

std::optional<Split> mergeSplits(const Split &a, const Split &b, int64_t n) {
  if (a.sameExtents(b))
    return a.fixed ? a : b;
  if (a.fixed && b.fixed)
    return std::nullopt;
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

bool sameShards(const Split &a, const Split &b, int64_t size, int64_t n) {
  if (a.sameExtents(b))
    return true;
  return a.blocks == b.blocks && size != kDynamic && shardsOf(a, size, n) == shardsOf(b, size, n);
}

} // namespace shardc
