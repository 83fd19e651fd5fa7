// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the sums of a scatter-add are divided, from sizes alone.
//
// Dims of the result whose loop no position depends on are columns: all columns have the same
// updates. The other dims number the rows. What is added to one row is one list of updates, in
// row-major order of the loops that are no columns; to sort updates by row, stably, gives all
// lists, and each element of the result is then a sum of its own.

#ifndef SHARDC_LOWERING_CUDA_SCATTER_SCATTERDIVISION_H
#define SHARDC_LOWERING_CUDA_SCATTER_SCATTERDIVISION_H

#include <cstdint>
#include <vector>

namespace shardc::cuda {

/// A size that is known only at run time.
constexpr int64_t kUnknownSize = -1;

/// What a scatter-add is, as far as it is known when it is compiled.
struct ScatterShape {
  std::vector<int64_t> out, domain;
  /// For each dim of the result its loop of the domain, -1 where positions are computed.
  std::vector<int64_t> loops;
  /// Of each loop of the domain: whether a position may change along it.
  std::vector<bool> varying;
};

struct ScatterColumn {
  unsigned dim, loop;
  /// The loop is as long as the dim, whatever the sizes are at run time.
  bool whole;
};

struct ScatterDivision {
  std::vector<unsigned> updateLoops; ///< of the domain, in its order
  std::vector<unsigned> rowDims;     ///< of the result, in its order
  std::vector<ScatterColumn> columns;
  /// Products of sizes, or kUnknownSize.
  int64_t updates = 1, rows = 1, elementsOfRow = 1;
  /// Numbers of updates, rows and columns, and what is computed with them, fit into 31 bits.
  bool narrow = false;
  /// Threads of a block beside each other along columns; a power of two, at most `kMostLanes`.
  int64_t lanes = 1;

  static constexpr int64_t kMostLanes = 128;
};

ScatterDivision divideScatter(const ScatterShape &shape);

/// How many digits of `bits` bits the numbers 0 .. `largest` have, at least one.
unsigned countDigits(uint64_t largest, unsigned bits);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_SCATTER_SCATTERDIVISION_H
