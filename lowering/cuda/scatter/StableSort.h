// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that sort pairs of a key and a number by key, stably: pairs with equal keys keep their
// order. A radix sort from the last digit on, of 8 bits a pass. Each pass counts digits in each
// tile, adds up the counts of the tiles before, and moves pairs to their places; the lanes of a
// warp find out by votes which of them have the same digit. There are no atomics: a place depends
// on nothing but the keys.

#ifndef SHARDC_LOWERING_CUDA_SCATTER_STABLESORT_H
#define SHARDC_LOWERING_CUDA_SCATTER_STABLESORT_H

#include "lowering/cuda/scatter/WordBuilder.h"

namespace shardc::cuda {

/// Global memory of a sort, and what is known on the host.
struct SortedPairs {
  /// Two halves of `count` elements each; a pass reads one and writes the other.
  mlir::Value keys, numbers;
  mlir::OpFoldResult count;
  /// Where in `keys` and `numbers` the sorted half begins.
  mlir::OpFoldResult begin;
};

/// Host code. Numbers are of the type of `words`, whose builder is at the end of what was built.
class StableSort {
public:
  static constexpr int64_t kThreads = 256, kDigits = 256, kBits = 8, kWarp = 32;
  /// Elements of a tile, the part of a block, and of them those of each thread.
  static constexpr int64_t kRounds = 8, kTile = kThreads * kRounds;

  /// Memory for `count` pairs. The first half of both is to be written then.
  StableSort(WordBuilder words, mlir::OpFoldResult count);

  const SortedPairs &pairs() const { return memory; }
  /// Launches that sort by the last `digits` digits of keys.
  void sort(mlir::OpFoldResult digits);

private:
  struct Pass {
    mlir::Value from, to, shift; ///< words
  };
  mlir::Value allocate(mlir::OpFoldResult size);
  mlir::Value hostIndex(mlir::OpFoldResult number);
  void count(const Pass &pass);
  void addUp();
  void place(const Pass &pass);

  WordBuilder words;
  SortedPairs memory;
  mlir::OpFoldResult tiles;
  mlir::Value counts; ///< of digit d in tile t: element d * tiles + t; then of all tiles before
  mlir::Value totals; ///< of each digit
};

/// Digits of a key that is `most` at most; at least 1 where that is not known.
mlir::OpFoldResult digitsUpTo(const WordBuilder &words, mlir::OpFoldResult most);

/// In device code: the first of the sorted pairs in [low, high) whose key is `key` or more; `high`
/// if none.
mlir::Value firstPairFrom(const WordBuilder &words, const SortedPairs &pairs, mlir::Value key,
                          mlir::Value low, mlir::Value high);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_SCATTER_STABLESORT_H
