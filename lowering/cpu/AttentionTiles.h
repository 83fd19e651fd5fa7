// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernels of attention, forward and backward, are made of: tiles of the queries and keys
// of one head in buffers, packed and padded to whole vectors, and products of such tiles in
// registers.
#ifndef SHARDC_LOWERING_CPU_ATTENTIONTILES_H
#define SHARDC_LOWERING_CPU_ATTENTIONTILES_H

#include "lowering/cpu/AttentionKernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace shardc::cpu {

class AttentionTiles {
protected:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<Value>;

  static constexpr int64_t kRows = 96;     // most queries of a tile
  static constexpr int64_t kKeys = 256;    // most keys of a tile
  static constexpr int64_t kMicroRows = 6; // of the inner products

  /// `element`: of the operands.
  AttentionTiles(mlir::func::FuncOp kernel, const AttentionOptions &options,
                 const target::Limits &limits, mlir::Type element);

  // Small words for index arithmetic and loops.
  Value index(int64_t v) { return mlir::arith::ConstantIndexOp::create(builder, loc, v); }
  template <typename Op> Value fold(Value a, Value b) {
    return builder.createOrFold<Op>(loc, a, b);
  }
  Value add(Value a, Value b) { return fold<mlir::arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return fold<mlir::arith::SubIOp>(a, b); }
  Value mul(Value a, Value b) { return fold<mlir::arith::MulIOp>(a, b); }
  Value minimum(Value a, Value b) { return fold<mlir::arith::MinSIOp>(a, b); }
  Value atLeastOne(Value a) { return fold<mlir::arith::MaxUIOp>(a, index(1)); }
  Value ceilDivide(Value a, Value b) { return fold<mlir::arith::CeilDivUIOp>(a, b); }
  Value roundUp(Value a, int64_t to) { return mul(ceilDivide(a, index(to)), index(to)); }
  static int64_t roundedUp(int64_t a, int64_t to) { return (a + to - 1) / to * to; }
  Value dim(Value memref, int64_t d);
  static int64_t sizeOf(Value memref, int64_t d);
  /// Whether the last dim is dense.
  static bool isUnit(Value memref);
  static mlir::Type elementOf(Value memref);

  void forEach(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  /// A loop that carries values; `body` returns the next ones.
  Values carry(Value from, Value to, int64_t step, ValueRange init,
               llvm::function_ref<Values(Value, ValueRange)> body);
  /// A loop over `count` tasks on all threads.
  void forEachTask(Value count, llvm::function_ref<void(Value)> body);

  // Numbers, in the type of the arithmetic.
  Value number(double v);
  Value infinity(); ///< the negative one
  Value splat(Value scalar);
  Value fadd(Value a, Value b) { return mlir::arith::AddFOp::create(builder, loc, a, b); }
  Value fsub(Value a, Value b) { return mlir::arith::SubFOp::create(builder, loc, a, b); }
  Value fmul(Value a, Value b) { return mlir::arith::MulFOp::create(builder, loc, a, b); }
  Value load(Value memref, ValueRange at);
  void store(Value v, Value memref, ValueRange at);
  Value loadVector(Value memref, ValueRange at);
  void storeVector(Value v, Value memref, ValueRange at);
  /// An element of an argument.
  Value loadWide(Value memref, ValueRange at);
  Value loadWideVector(Value memref, ValueRange at);
  /// The number, rounded to the element type of an argument.
  void storeNarrow(Value v, Value memref, ValueRange at);
  Value buffer(llvm::ArrayRef<int64_t> shape, ValueRange dynamic = {});
  /// A buffer of these sizes, which may be constants.
  Value buffer(Value rows, Value columns);
  /// All columns of a row of a buffer become zero; `columns` is a multiple of the lanes.
  void clearRow(Value target, Value row, Value columns);

  /// Vectors of a register tile across a matrix of that many columns: those that waste least.
  int64_t vectorsFor(int64_t columns) const;
  /// Sets `microRows`, `keyVectors`, `mostRows` and `mostKeys`, and how many queries and keys there
  /// are.
  void chooseTiles(Value query, Value key);
  /// Tiles of about the same size: their number and rows.
  std::pair<Value, Value> splitRows(Value rowCount);
  /// A task is one tile of `tileRows` queries: sets `firstRow` and `rows`.
  void enterRows(Value tile, Value tileRows, Value rowCount);
  /// Of the keys up to `end`, if there is one, those that some of the first `rows` queries sees: of
  /// causal attention not all.
  Value seenBy(Value rows, Value end = {});
  /// Sets `firstKey`, `keyTile` and `paddedKeys` for the keys from `first` up to `end`.
  void enterKeys(Value first, Value end);

  /// target[c][j] = source[firstKey + j][c] for the keys of the tile, zero beyond them: squares of
  /// vectors are transposed in registers, what is left over element by element.
  void packTransposed(Value source, Value target, Value columns);
  /// target[j][c] = source[firstKey + j][c], with zeros beyond `columns`.
  void packRows(Value source, Value target, Value columns, Value paddedColumns);
  /// target[r][c] = source[firstRow + r][c] * scale for the queries of the tile; zero in the rows
  /// that fill up the last register tile, and beyond `columns`.
  void packQueries(Value source, Value target, Value columns, Value paddedColumns, double scale);

  struct Product {
    llvm::function_ref<Value(Value row, Value inner)> left;
    llvm::function_ref<Value(Value inner, Value column)> right; ///< a vector
    Value into;
    Value firstRow; ///< of `into`; null: 0
    Value rows;     ///< a multiple of `microRows`
    Value inner, columns;
    int64_t microRows, vectors;
    bool accumulate;
  };
  /// into (+)= left right: blocks of microRows rows and `vectors` vectors stay in registers.
  void multiply(const Product &product);

  /// Scores of a row that do not take part become -infinity; an additive mask is added.
  void hide(Value scores, Value row);

  const AttentionOptions &options;
  mlir::Location loc;
  mlir::OpBuilder builder;
  mlir::Type type; // of the arithmetic
  mlir::VectorType vectorType;
  int64_t lanes, mostVectors, microRows = 1, keyVectors = 1, mostRows = 1, mostKeys = 1;
  Value mask;                 // null without one
  Value firstQuery;           // its position among the keys, null for 0
  Value queryCount, keyCount; // of a head
  // Of one tile.
  Value batch, head, keyHead, firstRow, rows, paddedRows, firstKey, keyTile, paddedKeys;

private:
  void transposeSquare(Value source, Value target, Value j, Value c);
};

} // namespace shardc::cpu

#endif // SHARDC_LOWERING_CPU_ATTENTIONTILES_H
