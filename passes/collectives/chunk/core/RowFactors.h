// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that a program is taken apart along, and what an op says of them.

#ifndef SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_ROWFACTORS_H
#define SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_ROWFACTORS_H

#include "dialects/sharding/ShardingRule.h"

#include <cstdint>
#include <optional>

namespace shardc::collectives {

/// How the rows of a region lie in a tensor: its dim `dim` is `outer` blocks of as many rows as the
/// region has (`extent`), and each row is `inner` long.
struct RowBlocks {
  unsigned dim = 0;
  uint64_t outer = 1, inner = 1;
  bool operator==(const RowBlocks &) const = default;
};

/// Where the rows are in a factor of an op: `blocks` times the region's rows times `length`.
struct RowFactor {
  unsigned factor;
  uint64_t blocks, length;
  bool operator==(const RowFactor &) const = default;
};

/// The factor that has the rows of a tensor; nothing where they are part of one, or several. The
/// sizes of all factors must be known.
std::optional<RowFactor> rowFactorOf(const ShardingRule &rule, const TensorFactors &dims,
                                     const RowBlocks &rows, uint64_t extent);

/// How many blocks of rows each block must be for the op to have one factor for them, if they are
/// several factors of its: 1 where nothing helps.
uint64_t moreBlocks(const ShardingRule &rule, const TensorFactors &dims, const RowBlocks &rows,
                    uint64_t extent);

/// The rows of a tensor that has the factor once; nothing for any other.
std::optional<RowBlocks> rowsInFactor(const ShardingRule &rule, const TensorFactors &dims,
                                      const RowFactor &rows);

bool hasFactor(const TensorFactors &dims, unsigned factor);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CHUNK_CORE_ROWFACTORS_H
