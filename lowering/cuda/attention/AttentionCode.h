// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words in which the attention kernels for devices are written: index arithmetic, numbers, loops,
// matrices of one head in global memory, and their tiles in shared memory, which all threads of a
// block copy together.
#ifndef SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONCODE_H
#define SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONCODE_H

#include "lowering/cuda/attention/AttentionPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace shardc::cuda {

/// The rows of one head in global memory, or of heads that share keys: then the rows of all of them
/// that belong to one query are neighbours.
struct AttentionMatrix {
  mlir::Value memory; ///< a memref of rows and columns, or of queries, heads and columns
  int64_t columns = 0;
  int64_t heads = 1;
  mlir::Value aligned; ///< whether all rows begin at multiples of 16 bytes; null: no
};

/// Rows in shared memory; columns beyond those of the matrix are zero up to `padded`.
struct AttentionTile {
  mlir::Value memory; ///< a memref of stages, rows and columns
  mlir::Value stage;  ///< which one of a tile that has several copies
  int64_t rows = 0, columns = 0, padded = 0;
};

class AttentionCode {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<Value>;

  /// `element`: of the operands.
  AttentionCode(mlir::OpBuilder builder, mlir::Location loc, mlir::Type element);

  // Index arithmetic.
  Value index(int64_t v) { return mlir::arith::ConstantIndexOp::create(builder, loc, v); }
  template <typename Op> Value fold(Value a, Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }
  Value add(Value a, Value b) { return fold<mlir::arith::AddIOp>(a, b); }
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
  Value sub(Value a, Value b) { return fold<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return fold<mlir::arith::MulIOp>(a, b); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : mul(a, index(b)); }
  Value div(Value a, Value b) { return fold<mlir::arith::DivUIOp>(a, b); }
  Value div(Value a, int64_t b) { return b == 1 ? a : div(a, index(b)); }
  Value rem(Value a, Value b) { return fold<mlir::arith::RemUIOp>(a, b); }
  Value rem(Value a, int64_t b) { return b == 1 ? index(0) : rem(a, index(b)); }
  Value minimum(Value a, Value b) { return fold<mlir::arith::MinSIOp>(a, b); }
  Value maximum(Value a, Value b) { return fold<mlir::arith::MaxSIOp>(a, b); }
  Value ceilDivide(Value a, int64_t b) { return div(add(a, b - 1), b); }
  Value less(Value a, Value b);
  Value both(Value a, Value b); ///< null is true
  Value i32(int64_t v);
  Value toI32(Value position);
  Value toIndex(Value number); ///< of 32 bits without sign
  /// The same index, of which nothing is computed before a loop around this code: in a rare branch
  /// that would take registers from the products. All threads of a warp are here. LLVM does not
  /// move a shuffle, and one by no bits gives what it gets.
  Value computedHere(Value index) { return toIndex(shuffle(toI32(index), /*bits=*/0)); }
  Value dim(Value memref, int64_t d);
  static int64_t sizeOf(Value memref, int64_t d);
  static mlir::Type elementOf(Value memref);

  // Control.
  void forEach(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  /// A loop that carries values; `body` returns the next ones.
  Values carry(Value from, Value to, int64_t step, ValueRange init,
               llvm::function_ref<Values(Value, ValueRange)> body);
  void when(Value condition, llvm::function_ref<void()> body,
            llvm::function_ref<void()> otherwise = {});
  /// What `body` makes of the values where the condition holds, and else themselves.
  Values change(Value condition, ValueRange values, llvm::function_ref<Values()> body);
  /// Blocks of `threads` threads in one dim that share these buffers; `parts` times as many, if it
  /// is not null.
  void launch(Value blocks, int64_t threads, llvm::ArrayRef<mlir::Type> shared,
              llvm::function_ref<void(ValueRange)> body, Value parts = {});
  void barrier();
  void syncWarp();

  // Numbers, in the type of the arithmetic.
  Value number(double v);
  Value minusInfinity();
  Value fadd(Value a, Value b) { return mlir::arith::AddFOp::create(builder, loc, a, b); }
  Value fsub(Value a, Value b) { return mlir::arith::SubFOp::create(builder, loc, a, b); }
  Value fmul(Value a, Value b) { return mlir::arith::MulFOp::create(builder, loc, a, b); }
  Value fma(Value a, Value b, Value c);
  Value larger(Value a, Value b) { return mlir::arith::MaximumFOp::create(builder, loc, a, b); }
  Value select(Value condition, Value a, Value b) {
    return mlir::arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// 2 to that power. With 16-bit operands as the device approximates it.
  Value exp2(Value v);
  Value log2(Value v);
  /// The value of the thread whose number differs in these bits.
  Value shuffle(Value v, int64_t bits);
  /// A number of any type in that of the arithmetic, and back.
  Value wide(Value v);
  Value narrow(Value v, mlir::Type type);

  // Memory.
  Value load(Value memref, ValueRange at);
  void store(Value v, Value memref, ValueRange at);
  /// `count` elements, which begin at a multiple of their size.
  Value loadVector(Value memref, ValueRange at, int64_t count);
  void storeVector(Value v, Value memref, ValueRange at);
  Values elements(Value vector);
  Value together(ValueRange numbers); ///< as a vector
  /// Rows and columns of [batch, head], or of that many heads from this one on.
  AttentionMatrix matrix(Value memory, Value batch, Value head, int64_t heads = 1);
  /// Where an element is in the memory of a matrix.
  Values at(const AttentionMatrix &matrix, Value row, Value column);
  mlir::Type tileType(int64_t stages, int64_t rows, const AttentionColumns &columns) const;
  static Values at(const AttentionTile &tile, Value row, Value column);
  /// Begins to copy the rows from `first`; those from `end` on are zero. What was begun is there
  /// after awaitCopies() and a barrier.
  void copyIn(const AttentionMatrix &from, const AttentionTile &to, Value first, Value end);
  /// Nothing, where memory is not aligned for asynchronous copies since the last call. `all`: what
  /// was built before may not have run.
  void awaitCopies(bool all = false);
  /// Writes the rows from `first` up to `end` that a tile has.
  void copyOut(const AttentionTile &from, const AttentionMatrix &to, Value first, Value end,
               Value firstColumn, int64_t columns);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::Type element, type;  ///< of the operands, and of the arithmetic
  Value thread, block, part; ///< numbers, in a launch
  int64_t threads = 0;

private:
  /// Divides rows x pieces among the threads: `body` for the rows that `first` up to `end` have,
  /// `beyond` for the others.
  void eachPiece(int64_t rows, int64_t pieces, Value first, Value end,
                 llvm::function_ref<void(Value, Value)> body,
                 llvm::function_ref<void(Value, Value)> beyond);
  /// `quick` where the matrix is aligned and its rows are whole pieces of 16 bytes.
  void byAlignment(const AttentionMatrix &matrix, llvm::function_ref<void()> quick,
                   llvm::function_ref<void()> slow);
  int64_t piece() const; ///< elements of 16 bytes

  // Of the asynchronous copies that were built in this launch: whether awaitCopies() was built
  // behind the last, and whether there are any.
  bool awaited = true, anyCopies = false;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ATTENTION_ATTENTIONCODE_H
