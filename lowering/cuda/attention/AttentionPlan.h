// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How a block of threads divides an attention: the sizes of its tiles in shared memory and what
// each thread has of them in registers. No IR.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H
#define SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H

#include "lowering/cuda/core/Chips.h"

#include <cstdint>
#include <optional>

namespace shardc::cuda {

/// What every chip from sm_80 on gives to a block.
inline constexpr int64_t kAttentionSharedBytes = kMostSharedBytes;
/// What the blocks of a multiprocessor share on sm_80; later chips have more.
inline constexpr int64_t kAttentionChipSharedBytes = 163 * 1024;
/// Sums that a thread may have, in registers of 32 bits: of at most 255, the rest is for what it
/// computes with.
inline constexpr int64_t kAttentionMostSums = 128;
/// Largest size of a head.
inline constexpr int64_t kAttentionMostDepth = 256;
/// Multiprocessors that kernels are made for: those of an H100. Every chip divides the work alike,
/// so that all add in the same order.
inline constexpr int64_t kAttentionMultiprocessors = 132;
/// Keys that are worth a block of their own.
inline constexpr int64_t kAttentionLeastKeys = 128;
/// Queries that the blocks of a decode step have where their number is not known when compiling.
inline constexpr int64_t kAttentionFewRows = 16;

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
  /// Blocks that a multiprocessor is to have at once, so that some compute while others wait.
  int64_t residentBlocks() const;
};

/// The largest tiles that fit into shared memory and, with what is computed from them, into the
/// registers of a block; none where even the smallest do not.
std::optional<AttentionPlan> planAttention(const AttentionProblem &problem);

/// How the keys of a query are divided among blocks (the forward, where there are few queries): as
/// many parts as blocks fit on the multiprocessors at once, but none of fewer than
/// kAttentionLeastKeys keys, in whole tiles. `Arithmetic` is that of a Number: of plain ones, or of
/// ops that compute them when the program runs.
template <typename Arithmetic, typename Number> struct AttentionParts {
  Number wanted; ///< for which there are multiprocessors
  Number useful; ///< that have enough keys
  Number keys;   ///< of a part: tiles of the plan
  Number count;  ///< of parts, 1 if there are no keys

  /// `blocks` there are without a division. `seen`: keys that some query sees.
  AttentionParts(Arithmetic &of, const AttentionPlan &plan, int64_t multiprocessors, Number blocks,
                 Number seen)
      : wanted(of.maximum(
            of.div(of.index(multiprocessors * plan.residentBlocks()), of.maximum(blocks, one(of))),
            one(of))),
        useful(of.maximum(of.div(seen, of.index(kAttentionLeastKeys)), one(of))) {
    Number tiles = of.ceilDivide(of.maximum(seen, one(of)), plan.columns);
    Number ofPart = divideUp(of, tiles, of.minimum(wanted, useful));
    keys = of.mul(ofPart, of.index(plan.columns));
    count = divideUp(of, tiles, ofPart);
  }

private:
  static Number one(Arithmetic &of) { return of.index(1); }
  static Number divideUp(Arithmetic &of, Number a, Number by) {
    return of.div(of.add(a, of.sub(by, one(of))), by);
  }
};

/// Of plain numbers.
struct PlainArithmetic {
  static int64_t index(int64_t v) { return v; }
  static int64_t add(int64_t a, int64_t b) { return a + b; }
  static int64_t sub(int64_t a, int64_t b) { return a - b; }
  static int64_t mul(int64_t a, int64_t b) { return a * b; }
  static int64_t div(int64_t a, int64_t b) { return a / b; }
  static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }
  static int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
  static int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONPLAN_H
