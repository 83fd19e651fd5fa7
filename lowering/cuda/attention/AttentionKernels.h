// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attention kernels for devices: softmax(q k^T * scale + mask) v, tile by tile, with the online
// softmax of FlashAttention (Dao et al., 2022; Dao, 2023), and its backward, which computes the
// weights of a tile again from the logsumexp of their queries: the scores of a row never exist as a
// whole.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONKERNELS_H
#define SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONKERNELS_H

#include "lowering/cuda/attention/AttentionEngine.h"
#include "lowering/host/SharedKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::cuda {

struct DeviceAttention : host::AttentionOptions {
  /// Forward: blocks divide the keys of few queries until that many multiprocessors are busy.
  int64_t multiprocessors = kAttentionMultiprocessors;
};

/// A kernel (`exec.kernel`) of the arguments of `exec.attention`, which launches on the
/// device. The sizes of a head are static and at most kAttentionMostDepth.
mlir::func::FuncOp buildDeviceAttention(mlir::Location loc, llvm::ArrayRef<mlir::Type> arguments,
                                        const DeviceAttention &options);
/// Likewise of `exec.attention_backward`.
mlir::func::FuncOp buildDeviceAttentionBackward(mlir::Location loc,
                                                llvm::ArrayRef<mlir::Type> arguments,
                                                const DeviceAttention &options);

/// What the kernels share: where a block is, and which keys its queries see.
class AttentionBlock {
protected:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = AttentionCode::Values;

  AttentionBlock(mlir::func::FuncOp kernel, const DeviceAttention &options, mlir::Type element);

  /// The rows of a head, -1 where they are not known.
  static int64_t knownRows(Value memory);
  /// The tiles of 1 or more rows of each head of each batch, times `parts`.
  Value countBlocks(Value heads, Value batches, Value rows, const AttentionPlan &plan);
  struct Place {
    Value batch, head, tile, part;
  };
  /// Which of them this block is; `lastFirst`: the last tiles of a head come first.
  Place findPlace(Value heads, Value rows, const AttentionPlan &plan, bool lastFirst);
  /// The query of a row, where rows of a head of keys are those of all heads of queries that use
  /// it.
  Value queryOf(Value row) { return code.div(row, heads); }
  /// Of causal attention: query q sees keys up to q plus this.
  Value causalShift() { return firstQuery ? firstQuery : code.index(0); }
  /// The head of keys that a head of queries uses.
  Value keyHeadOf(Value head, Value query, Value key);

  /// Where the scores of a tile are; the rows are queries, or keys if `transposed`.
  struct Scores {
    AttentionEngine &engine;
    int64_t rows, columns;      ///< of the tile
    Value firstQuery, firstKey; ///< rows of queries and keys of the tile
    Value queries, keys;        ///< how many there are
    bool transposed = false;
  };
  /// Whether scores are used as the products are, and scaled when their exponential is computed.
  bool scalesLate() const { return !options.hasMask && options.scale > 0; }
  /// The factor of scores then, in powers of two.
  double lateScale() const;
  /// Writes sums in the type of the arithmetic from registers: rows from `first` up to `end`,
  /// columns from `firstColumn`, which is null for 0.
  void writeSums(AttentionEngine &engine, const AttentionNumbers &sums,
                 const AttentionPositions &at, const AttentionMatrix &to, Value first, Value end,
                 Value firstColumn);
  /// Products become scores, in powers of two unless `scalesLate`, with the mask; those that do not
  /// take part become -infinity.
  void finishScores(AttentionNumbers &scores, const Scores &at, const AttentionMatrix &mask);

  DeviceAttention options;
  AttentionCode code;
  Value firstQuery; ///< its position among the keys, null for 0
  /// Of queries that a block has together: those that use the same keys.
  int64_t heads = 1;

private:
  void applyMask(AttentionNumbers &scores, const Scores &at, const AttentionMatrix &mask);
  void hideUnseen(AttentionNumbers &scores, const Scores &at);
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONKERNELS_H
