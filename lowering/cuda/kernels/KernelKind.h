// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kinds of launches. A fused kernel becomes a sequence of launches: each kind says how many of the
// ops that are left it can compute at once, the kind that takes most of them emits them, and so on
// until none is left. One file has one kind.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_KERNELKIND_H
#define SHARDC_LOWERING_CUDA_KERNELS_KERNELKIND_H

#include "lowering/cuda/kernels/FusedKernel.h"

#include <memory>

namespace shardc::cuda {

/// Consecutive ops of a kernel that are computed together.
struct KernelStage {
  FusedKernel &kernel;
  llvm::ArrayRef<mlir::linalg::LinalgOp> ops;
  /// Results that have to be in memory (`kernel.placeOf`, and every `destinationsOf`) afterwards,
  /// because they are results of the kernel or later stages read them. All others exist within the
  /// stage alone.
  llvm::SmallVector<mlir::OpResult> stored;

  bool contains(mlir::Value value) const {
    mlir::Operation *op = value.getDefiningOp();
    return op && llvm::any_of(ops, [&](mlir::linalg::LinalgOp o) { return o == op; });
  }
};

/// The first `count` of `ops`, which are all that are left of the kernel, as a stage.
KernelStage makeStage(FusedKernel &kernel, llvm::ArrayRef<mlir::linalg::LinalgOp> ops,
                      size_t count);

class KernelKind {
public:
  virtual ~KernelKind() = default;
  virtual llvm::StringRef name() const = 0;
  /// How many of the first ops of `ops`, which are all that are left of the kernel, this kind
  /// computes together: 0 for none. Changes nothing.
  virtual size_t match(FusedKernel &kernel, llvm::ArrayRef<mlir::linalg::LinalgOp> ops) const = 0;
  /// Makes the launches at `host`, which stands in the kernel's body behind the values of its
  /// extents. All that is stored has a place by then.
  virtual mlir::LogicalResult emit(const KernelStage &stage, mlir::OpBuilder &host) const = 0;
};

/// All kinds; of those that take the same number of ops, the first is used. The last takes any op.
llvm::ArrayRef<std::unique_ptr<KernelKind>> kernelKinds();

/// Maps on elements, any number of ops.
std::unique_ptr<KernelKind> createPointwiseKind();
/// Reductions along one set of dims, what is computed from them, and scans.
std::unique_ptr<KernelKind> createRowsKind();
/// One op of any form: a thread for each of its parallel points, which runs over the others.
std::unique_ptr<KernelKind> createGeneralKind();

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_KERNELKIND_H
