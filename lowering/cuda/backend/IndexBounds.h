// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large the indices of a function of the device may be in one launch: numbers where sizes are
// known, else expressions that the host computes before the launch.

#ifndef SHARDC_LOWERING_CUDA_BACKEND_INDEXBOUNDS_H
#define SHARDC_LOWERING_CUDA_BACKEND_INDEXBOUNDS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"

namespace shardc::cuda {

/// The magnitude of a value: at most `most`, which is null where nothing is known.
struct IndexBound {
  mlir::OpFoldResult most;
  bool isNatural = true; ///< not negative
  /// Not bounded, but exact in its lowest 32 bits: the address of memory, of which code looks at
  /// the alignment.
  bool isAddress = false;

  bool isKnown() const { return static_cast<bool>(most); }
};

/// Whether 32 bits with sign are enough for all indices of a function and all offsets of its
/// memory: then arithmetic in 32 bits gives what 64 bits give.
class IndexBounds {
public:
  /// Expressions are made in front of the launch.
  IndexBounds(mlir::gpu::GPUFuncOp function, mlir::gpu::LaunchFuncOp launch);

  /// False where 32 bits are not enough, or may not be for reasons that the host cannot tell.
  bool prove();
  /// After prove(): what must hold when the program runs; null if nothing is left.
  mlir::Value condition() const { return guard; }

private:
  using Value = mlir::Value;
  using OpFoldResult = mlir::OpFoldResult;

  IndexBound of(Value value);
  IndexBound ofArgument(mlir::BlockArgument argument);
  IndexBound ofOp(mlir::Operation *op, mlir::OpResult result);
  IndexBound ofArith(mlir::Operation *op);
  bool proveOp(mlir::Operation *op);
  /// The furthest offset of memory, in elements.
  bool proveSpan(Value memory);
  /// Values that are only positions in memory: an access is in range, or not made.
  static bool isOnlyPosition(Value value);
  /// This must be less than 2^31, and not negative.
  void require(OpFoldResult most);

  OpFoldResult number(int64_t v) { return host.getIndexAttr(v); }
  OpFoldResult add(OpFoldResult a, OpFoldResult b);
  OpFoldResult mul(OpFoldResult a, OpFoldResult b);
  OpFoldResult quotient(OpFoldResult a, int64_t by);
  OpFoldResult larger(OpFoldResult a, OpFoldResult b);
  OpFoldResult smaller(OpFoldResult a, OpFoldResult b);
  Value materialize(OpFoldResult a);

  mlir::gpu::GPUFuncOp function;
  mlir::gpu::LaunchFuncOp launch;
  mlir::OpBuilder host;
  mlir::Location loc;
  llvm::DenseMap<Value, IndexBound> known;
  llvm::DenseSet<Value> required;
  Value guard;
  bool failed = false;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_INDEXBOUNDS_H
