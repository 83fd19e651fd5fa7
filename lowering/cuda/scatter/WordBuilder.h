// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic on the numbers of elements in device code: in 32 bits where sizes prove that they are
// enough, else in 64. Numbers are not negative, and below the largest signed one.

#ifndef SHARDC_LOWERING_CUDA_SCATTER_WORDBUILDER_H
#define SHARDC_LOWERING_CUDA_SCATTER_WORDBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace shardc::cuda {

class WordBuilder {
public:
  WordBuilder(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type)
      : builder(builder), loc(loc), type(type) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type; ///< i32 or i64

  WordBuilder at(mlir::OpBuilder &other) const { return {other, loc, type}; }

  mlir::Value constant(int64_t value) const;
  /// A constant, which is made here, or a value of the type.
  mlir::Value of(mlir::OpFoldResult number) const;
  mlir::Value fromIndex(mlir::Value index) const;
  mlir::Value toIndex(mlir::Value word) const;
  /// Of i32 numbers, those of a block.
  mlir::Value fromI32(mlir::Value number) const;

  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value sub(mlir::Value a, mlir::Value b) const;
  mlir::Value mul(mlir::Value a, mlir::Value b) const;
  mlir::Value div(mlir::Value a, mlir::Value b) const;
  mlir::Value rem(mlir::Value a, mlir::Value b) const;
  mlir::Value min(mlir::Value a, mlir::Value b) const;
  mlir::Value isBelow(mlir::Value a, mlir::Value b) const; ///< i1
  mlir::Value isEqual(mlir::Value a, mlir::Value b) const; ///< i1

  /// Of memory with one dim.
  mlir::Value load(mlir::Value memory, mlir::Value at) const;
  void store(mlir::Value value, mlir::Value memory, mlir::Value at) const;

  /// The position with that number, in row-major order of `sizes`.
  mlir::SmallVector<mlir::Value> delinearise(mlir::Value number,
                                             mlir::ArrayRef<mlir::OpFoldResult> sizes) const;
};

/// `a * b` and the quotient rounded up, on the host, folded where both are known.
mlir::OpFoldResult multiplyNumbers(const WordBuilder &words, mlir::OpFoldResult a,
                                   mlir::OpFoldResult b);
mlir::OpFoldResult divideNumberUp(const WordBuilder &words, mlir::OpFoldResult a, int64_t b);

/// Sizes of memory, on the host: constants where the type has them, else words.
mlir::OpFoldResult sizeOf(const WordBuilder &words, mlir::Value memory, int64_t dim);
mlir::SmallVector<mlir::OpFoldResult> sizesOf(const WordBuilder &words, mlir::Value memory);
mlir::OpFoldResult productOf(const WordBuilder &words, mlir::ArrayRef<mlir::OpFoldResult> sizes);

/// The threads of a launch, as its body sees them.
struct LaunchedBlock {
  mlir::Value thread;                       ///< index, 0 .. block size - 1
  mlir::Value x, y;                         ///< number of the block, index
  mlir::Value countY;                       ///< of blocks, index
  mlir::SmallVector<mlir::Value, 2> shared; ///< the memories asked for
};

/// A launch of `x` by `y` blocks of `threads` threads, with memories of these types for each block.
void launchBlocks(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, mlir::Value y,
                  int64_t threads, mlir::ArrayRef<mlir::MemRefType> shared,
                  llvm::function_ref<void(mlir::OpBuilder &, const LaunchedBlock &)> body);

/// A launch of a thread for each of the `count` numbers, a constant or a word of the host.
void forEachNumber(const WordBuilder &words, mlir::OpFoldResult count,
                   llvm::function_ref<void(const WordBuilder &, mlir::Value)> body);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_SCATTER_WORDBUILDER_H
