// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fused kernel as the kinds of launches see it: its ops in order, which of their values have to
// be in memory, and where.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_FUSEDKERNEL_H
#define SHARDC_LOWERING_CUDA_KERNELS_FUSEDKERNEL_H

#include "dialects/exec/Exec.h"
#include "lowering/tiling/TileSpace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace shardc::cuda {

/// Whether no loop of the op is a reduction.
bool isPointwise(mlir::linalg::LinalgOp op);

/// Ops are generic ones and fills. A fill that no destination gets is no op of its own: it is
/// computed again wherever it is read (`isConstant`).
class FusedKernel {
public:
  /// Brings the kernel to this form and describes it. Fails with a diagnostic.
  static mlir::FailureOr<FusedKernel> analyze(mlir::func::FuncOp kernel,
                                              const target::Limits &limits);

  mlir::func::FuncOp getFunction() const { return function; }
  mlir::Location getLoc() { return function.getLoc(); }
  /// Dims that the ops share. An argument's dims count: a vector that is read along two dims makes
  /// them one, and an op then has that dim twice (`dims().loopsOf`).
  const tiling::TileSpace &dims() const { return space; }
  const target::Limits &getLimits() const { return limits; }
  /// In program order.
  llvm::ArrayRef<mlir::linalg::LinalgOp> getOps() const { return ops; }
  /// Whether a value is a fill that is computed wherever it is read.
  bool isConstant(mlir::Value tensor) const { return constants.contains(tensor); }
  /// The arguments in which a value is wanted.
  llvm::ArrayRef<mlir::Value> destinationsOf(mlir::Value tensor) const;
  /// The ranges in which the elements of a tensor must lie when an op that reads it looks up
  /// elements of others.
  llvm::ArrayRef<exec::CheckRangeOp> checksOf(mlir::Value tensor) const;

  /// The memory of a value: of an argument's, the argument; of one that is stored, its first
  /// destination or its temporary. Null for others.
  mlir::Value placeOf(mlir::Value tensor) const;
  /// Makes sure that a value has memory: where it has no destination, a temporary at `host`.
  mlir::Value makePlace(mlir::OpBuilder &host, mlir::Value tensor);

  /// Host values and constants. They dominate the end of the kernel's body, where launches are
  /// made.
  mlir::OpFoldResult extentOf(unsigned dim);
  llvm::SmallVector<mlir::OpFoldResult> sizesOf(mlir::Value tensor);
  /// The extent of each loop of an op.
  llvm::SmallVector<mlir::OpFoldResult> loopExtents(mlir::linalg::LinalgOp op);
  /// Known ones; kDynamic for others.
  int64_t staticExtent(unsigned dim) const { return space.extent(dim); }

  unsigned temporaryCount() const { return temporaries.size(); }
  /// Removes the ops on tensors, after all of them have been emitted.
  mlir::LogicalResult eraseTensors();

private:
  mlir::LogicalResult normalize();
  void collect();

  mlir::func::FuncOp function;
  target::Limits limits;
  tiling::TileSpace space;
  llvm::SmallVector<mlir::linalg::LinalgOp> ops;
  llvm::DenseSet<mlir::Value> constants;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> destinations;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<exec::CheckRangeOp, 1>> checks;
  llvm::DenseMap<mlir::Value, mlir::Value> temporaries;
  llvm::DenseMap<unsigned, mlir::OpFoldResult> extents;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_FUSEDKERNEL_H
