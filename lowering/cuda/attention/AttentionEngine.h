// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of tiles in shared memory, with results in the registers of a block: in multiply-adds of
// scalars, or with the matrix units of the device (mma.sync).
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONENGINE_H
#define SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONENGINE_H

#include "lowering/cuda/attention/AttentionCode.h"

#include <memory>

namespace shardc::cuda {

/// Where numbers of a thread are along one dim: at a base of its own plus constants.
struct AttentionPositions {
  mlir::Value base;
  llvm::SmallVector<int64_t> offsets;
  int64_t group = 1; ///< that many offsets each are neighbours
  int64_t size() const { return static_cast<int64_t>(offsets.size()); }
};

/// The part of a matrix that a thread has: its rows times its columns.
struct AttentionNumbers {
  int64_t columns = 0;
  llvm::SmallVector<mlir::Value> values;
  mlir::Value &at(int64_t i, int64_t j) { return values[i * columns + j]; }
  mlir::Value at(int64_t i, int64_t j) const { return values[i * columns + j]; }
};

class AttentionEngine {
public:
  using Value = mlir::Value;

  /// In a launch. `exchange` is the buffer of that type, if there is one.
  static std::unique_ptr<AttentionEngine> create(AttentionCode &code, const AttentionPlan &plan,
                                                 Value exchange);
  /// Of the buffer through which threads exchange weights; null where they do not.
  static mlir::Type exchangeType(const AttentionCode &code, const AttentionPlan &plan);
  virtual ~AttentionEngine() = default;

  const AttentionPositions &rows() const { return rowPositions; }
  const AttentionPositions &columns() const { return columnPositions; }
  /// Columns of sums, as many as the padded columns of a part.
  virtual AttentionPositions sumColumns(const AttentionColumns &of) const = 0;

  /// Whether only threads of one warp read a row of a left operand, and wait for each other in
  /// accumulate(), between that and what follows.
  virtual bool readsOwnRows() const { return false; }

  /// left right^T: the product of all rows of both.
  virtual AttentionNumbers scores(const AttentionTile &left, const AttentionTile &right) = 0;
  /// sums += weights right. The sums are at these columns from `firstColumn` of `right`, which is
  /// null for 0.
  /// `isFirst`: it is the first product of a turn, before which a barrier of the block stands after
  /// the last product of the turn before.
  virtual void accumulate(AttentionNumbers &sums, const AttentionPositions &at,
                          const AttentionNumbers &weights, const AttentionTile &right,
                          Value firstColumn, bool isFirst) = 0;
  /// Combines the numbers of the threads that share a row, in one order.
  Value acrossRow(Value v, llvm::function_ref<Value(Value, Value)> combine);
  /// Writes sums, rounded, to the rows and columns of a tile.
  void stage(const AttentionNumbers &sums, const AttentionPositions &at, const AttentionTile &to,
             Value firstColumn);

protected:
  AttentionEngine(AttentionCode &code, const AttentionPlan &plan) : code(code), plan(plan) {}

  AttentionCode &code;
  const AttentionPlan &plan;
  AttentionPositions rowPositions, columnPositions;
  /// Threads of a row differ in the lowest bits of their numbers.
  int64_t threadsOfRow = 1;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONENGINE_H
