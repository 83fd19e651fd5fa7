// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a block of threads divides an attention: the sizes of its tiles in shared memory and what
// each thread has of them in registers. No IR.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H
#define SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H

#include <cstdint>

namespace shardc::cuda {

/// What every chip from sm_80 on gives to a block.
inline constexpr int64_t kAttentionSharedBytes = 99 * 1024;
/// What the blocks of a multiprocessor share on sm_80; later chips have more.
inline constexpr int64_t kAttentionChipSharedBytes = 163 * 1024;
/// Largest size of a head.
inline constexpr int64_t kAttentionMostDepth = 256;

/// The three kernels: what stays in shared memory are the queries of a block (forward, and the
/// cotangent of the query) or its keys (the cotangents of key and value); tiles of the other pass
/// by.
enum class AttentionKernelKind { Forward, QueryGradient, KeyGradient };

struct AttentionProblem {
  AttentionKernelKind kind = AttentionKernelKind::Forward;
  int64_t elementBytes = 4;
  int64_t depth = 0, width = 0; ///< columns of query and key; of value and result
  /// Rows that stay and that pass by; -1 where they are not known.
  int64_t rows = -1, columns = -1;
};

/// Columns of a tile in shared memory, padded, and the distance of rows: an odd multiple of 16
/// bytes, so that 8 rows at one column are in different banks.
struct AttentionColumns {
  int64_t padded = 0, stride = 0;
  /// FMA form: the vectors of `vector` columns that a thread sums up, and that of sums.
  int64_t vector = 1, perThread = 0;
};

struct AttentionPlan {
  bool matrixUnits = false; ///< mma.sync, for 16-bit types; else FMA
  int64_t threads = 0;
  int64_t rows = 0;    ///< of a tile that stays
  int64_t columns = 0; ///< rows of a tile that passes by: columns of the scores
  int64_t stages = 1;  ///< of the tiles that pass by
  AttentionColumns depth, width;
  /// Blocks that share a tile, each with a part of the columns of the sums.
  int64_t parts = 1;
  /// FMA form: threads along the rows and the columns of the scores.
  int64_t threadRows = 0, threadColumns = 0;
  /// FMA form: distance of rows of the tile through which weights go to other threads.
  int64_t exchangeStride = 0;
  int64_t sharedBytes = 0;

  /// Rows and columns of the scores that a thread has.
  int64_t rowsPerThread() const;
  int64_t columnsPerThread() const;
};

/// The sizes that fit; depth and width are at most kAttentionMostDepth.
AttentionPlan planAttention(const AttentionProblem &problem);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H
