// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory accesses of device code that move several neighbouring elements in one instruction. The
// widest has 16 bytes and must be aligned to them; inputs and parameters are aligned to their
// elements only, so code tests at run time, with the same answer in all threads.

#ifndef SHARDC_LOWERING_CUDA_ACCESSES_H
#define SHARDC_LOWERING_CUDA_ACCESSES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace shardc::cuda {

constexpr int64_t kVectorBytes = 16;

/// Bytes of an element in memory.
int64_t bytesOfElement(mlir::Type element);

/// The type of a static buffer in the shared memory of a block.
mlir::MemRefType sharedMemory(llvm::ArrayRef<int64_t> shape, mlir::Type element);

/// An i1: whether the first element of `memory`, whose offset is 0, stands at a multiple of
/// `bytes`, a power of two.
mlir::Value isAligned(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                      int64_t bytes);
/// An i1: whether a size is a multiple of `factor`, a power of two.
mlir::Value isMultiple(mlir::OpBuilder &builder, mlir::Location loc, mlir::OpFoldResult size,
                       int64_t factor);

/// The elements from the first one of `memory` on, in the order of their addresses, as a vector of
/// `size` elements. The offset of `memory` is 0.
mlir::Value flatView(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value memory,
                     mlir::OpFoldResult size);

/// How many of `count` neighbours one access moves: as many as have 16 bytes together.
int64_t accessLanes(mlir::Type element, int64_t count);

/// `count` neighbours along the last dim of a memory, whose stride is 1, from a position on. One
/// access has the bytes that the elements have together, but at most 16: the address must be a
/// multiple of them.
llvm::SmallVector<mlir::Value> loadLanes(mlir::OpBuilder &builder, mlir::Location loc,
                                         mlir::Value memory, mlir::ValueRange positions,
                                         int64_t count);
/// The same as the vectors that accesses move, of `accessLanes` elements each, more than one.
llvm::SmallVector<mlir::Value> loadVectors(mlir::OpBuilder &builder, mlir::Location loc,
                                           mlir::Value memory, mlir::ValueRange positions,
                                           int64_t count);
void storeLanes(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange lanes,
                mlir::Value memory, mlir::ValueRange positions);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_ACCESSES_H
