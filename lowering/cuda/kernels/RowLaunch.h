// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all elements of the rows of one launch share: how memory is accessed, and where the row of a
// thread is.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ROWLAUNCH_H
#define SHARDC_LOWERING_CUDA_KERNELS_ROWLAUNCH_H

#include "lowering/cuda/kernels/RowSpace.h"

namespace shardc::cuda {

/// Memory, and the dims that index it.
using RowMemory = std::pair<mlir::Value, llvm::SmallVector<int, 4>>;

/// What the kernel's accesses say for its plan, and again for its code.
class RowAccesses {
public:
  RowAccesses(const KernelStage &stage, const RowSpace &space);

  /// Elements that one access may read or write.
  int64_t vector() const { return width; }
  /// Whether the rows of `aligning` begin at multiples of `vector`.
  bool alignedRows() const { return aligned; }
  /// The memory whose alignment decides where chunks begin.
  const RowMemory &aligning() const { return first; }
  /// Whether chunks of `width` elements are contiguous in memory.
  bool isContiguous(const RowMemory &memory, int64_t width) const;

private:
  const RowSpace &space;
  int64_t width = 1;
  bool aligned = true;
  RowMemory first;
};

/// Values and code that all chunks of a launch share.
class RowLaunch {
public:
  RowLaunch(const KernelStage &stage, const RowSpace &space, const RowAccesses &accesses,
            const RowPlan &plan, mlir::OpBuilder &builder, mlir::gpu::LaunchOp launch);
  ~RowLaunch();

  /// Finds the row of this thread. `rows`: how many there are; `lengths`: extents of the inner
  /// dims.
  void begin(mlir::OpFoldResult rows, llvm::ArrayRef<mlir::OpFoldResult> outer,
             llvm::ArrayRef<mlir::OpFoldResult> inner);

  const KernelStage &stage;
  const RowSpace &space;
  const RowAccesses &accesses;
  const RowPlan &plan;
  mlir::OpBuilder &builder;
  /// Stands before the loop that is made, or where `builder` does.
  mlir::OpBuilder rowBuilder;
  mlir::Location loc;
  mlir::gpu::LaunchOp launch;
  SharedBuffers shared;
  RowTeam team;
  /// The number of the row; and whether it exists (null: always), else row 0 is computed again.
  mlir::Value number, active;
  llvm::DenseMap<int, mlir::Value> outer;
  llvm::SmallVector<mlir::OpFoldResult> innerExtents;
  mlir::Value length;
  /// Positions by which the first chunk begins before the row; null: 0.
  mlir::Value shift;
  /// Chunks of the row.
  mlir::Value chunks;
  /// Results of reductions.
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
  unsigned pass = 0;
  /// Where elements that later passes need are kept.
  std::map<ElementAccess, mlir::Value> buffers;

  /// An element that is the same for the whole row; its code is before the loops.
  mlir::Value ofRow(const ElementAccess &access);
  /// Whether accesses to chunks are aligned.
  mlir::Value isAligned(const RowMemory &memory);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value index(int64_t value);

private:
  mlir::Value offsetOfRow(const RowMemory &memory, int64_t modulus);

  std::unique_ptr<ElementBuilder> rowElements;
  std::map<std::pair<void *, llvm::SmallVector<int, 4>>, mlir::Value> alignments;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ROWLAUNCH_H
