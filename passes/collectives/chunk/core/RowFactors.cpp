// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/chunk/core/RowFactors.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

static uint64_t productOf(const ShardingRule &rule, std::span<const unsigned> factors) {
  uint64_t size = 1;
  for (unsigned factor : factors)
    size *= static_cast<uint64_t>(rule.factors[factor].size);
  return size;
}

std::optional<RowFactor> shardc::collectives::rowFactorOf(const ShardingRule &rule,
                                                          const TensorFactors &dims,
                                                          const RowBlocks &rows, uint64_t extent) {
  if (rows.dim >= dims.size())
    return std::nullopt;
  std::span<const unsigned> factors = dims[rows.dim];
  for (size_t i = 0; i != factors.size(); ++i) {
    uint64_t before = productOf(rule, factors.first(i)),
             after = productOf(rule, factors.subspan(i + 1));
    if (before == 0 || after == 0 || rows.outer % before != 0 || rows.inner % after != 0)
      continue;
    RowFactor found{factors[i], rows.outer / before, rows.inner / after};
    if (found.blocks * extent * found.length ==
        static_cast<uint64_t>(rule.factors[factors[i]].size))
      return found;
  }
  return std::nullopt;
}

uint64_t shardc::collectives::moreBlocks(const ShardingRule &rule, const TensorFactors &dims,
                                         const RowBlocks &rows, uint64_t extent) {
  if (rows.dim >= dims.size())
    return 1;
  std::span<const unsigned> factors = dims[rows.dim];
  for (size_t first = 0; first != factors.size(); ++first)
    for (size_t last = first + 1; last != factors.size(); ++last)
      if (productOf(rule, factors.first(first)) == rows.outer &&
          productOf(rule, factors.subspan(last + 1)) == rows.inner &&
          productOf(rule, factors.subspan(first, last - first + 1)) == extent)
        return productOf(rule, factors.subspan(first, last - first));
  return 1;
}

std::optional<RowBlocks> shardc::collectives::rowsInFactor(const ShardingRule &rule,
                                                           const TensorFactors &dims,
                                                           const RowFactor &rows) {
  std::optional<RowBlocks> found;
  for (unsigned dim = 0; dim != dims.size(); ++dim)
    for (size_t i = 0; i != dims[dim].size(); ++i)
      if (dims[dim][i] == rows.factor) {
        std::span<const unsigned> factors = dims[dim];
        if (found)
          return std::nullopt;
        found = RowBlocks{dim, productOf(rule, factors.first(i)) * rows.blocks,
                          rows.length * productOf(rule, factors.subspan(i + 1))};
      }
  return found;
}

bool shardc::collectives::hasFactor(const TensorFactors &dims, unsigned factor) {
  return std::any_of(dims.begin(), dims.end(), [&](const DimFactors &factors) {
    return std::find(factors.begin(), factors.end(), factor) != factors.end();
  });
}
