// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How threads share rows: decided from sizes alone, so that every machine adds in the same order.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ROWPLAN_H
#define SHARDC_LOWERING_CUDA_KERNELS_ROWPLAN_H

#include <cstdint>

namespace shardc::cuda {

/// Stands for a size that is known when the kernel runs.
inline constexpr int64_t kUnknownSize = -1;

/// What a plan is made for.
struct RowShape {
  int64_t rows = kUnknownSize;
  int64_t length = kUnknownSize;
  /// Elements that one access may read or write at once.
  int64_t vector = 1;
  /// Whether rows begin at multiples of `vector`.
  bool alignedRows = true;
  /// Whether neighbours in memory belong to different rows.
  bool columns = false;
  /// Passes over a row, and values of each element that a later pass needs again.
  int64_t passes = 1;
  int64_t keptValues = 0;
  int64_t keptBytes = 0;
  /// Ops that the code of one element has.
  int64_t elementOps = 1;
  /// Whether all results are found by one step after another along the row.
  bool scan = false;
};

struct RowPlan {
  enum class Form {
    /// Each thread has its part of the row in registers.
    Registers,
    /// What later passes need is in shared memory.
    Shared,
    /// Each pass reads memory again.
    Passes,
    /// Several blocks share a row: one launch for each pass, and one that combines what its blocks
    /// have found.
    Split,
  };
  Form form = Form::Passes;
  /// Threads that share a row, and rows of a block; both are powers of two.
  int64_t team = 1;
  int64_t rowsOfBlock = 1;
  int64_t vector = 1;
  /// Neighbouring threads have neighbouring rows.
  bool columns = false;
  /// Of `Registers`: accesses of each thread.
  int64_t chunks = 0;
  /// Of `Split`: blocks that share a row. Where the length is not known: at most as many.
  int64_t splits = 1;

  int64_t threads() const { return team * rowsOfBlock; }
};

RowPlan planRows(const RowShape &shape);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ROWPLAN_H
