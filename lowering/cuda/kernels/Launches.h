// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gpu.launch with constant block sizes, and the arithmetic of positions in it.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_LAUNCHES_H
#define SHARDC_LOWERING_CUDA_KERNELS_LAUNCHES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace shardc::cuda {

/// Makes a launch; absent entries of `grid` and `block` are 1. `body` gets a builder in it, and the
/// launch for its ids and for its shared memory, whose types are `shared`.
mlir::gpu::LaunchOp
createLaunch(mlir::OpBuilder &host, mlir::Location loc, llvm::ArrayRef<mlir::OpFoldResult> grid,
             llvm::ArrayRef<int64_t> block, mlir::TypeRange shared,
             llvm::function_ref<void(mlir::OpBuilder &, mlir::gpu::LaunchOp)> body);

/// Products and quotients of extents, on the host.
mlir::OpFoldResult multiply(mlir::OpBuilder &host, mlir::Location loc,
                            llvm::ArrayRef<mlir::OpFoldResult> sizes);
mlir::OpFoldResult divideUp(mlir::OpBuilder &host, mlir::Location loc, mlir::OpFoldResult size,
                            int64_t by);

/// Positions in device code: in 32 bits where static extents prove that they fit, else indices.
class DeviceIndex {
public:
  /// `bound`: exclusive; no value for one that is not known.
  DeviceIndex(mlir::OpBuilder &builder, mlir::Location loc, std::optional<int64_t> bound);

  /// The same, for code that another builder makes.
  DeviceIndex at(mlir::OpBuilder &other) const { return DeviceIndex(other, loc, integer); }

  mlir::Value constant(int64_t value) const;
  /// From an index or a constant, and back.
  mlir::Value of(mlir::OpFoldResult index) const;
  mlir::Value toIndex(mlir::Value value) const;
  mlir::Value add(mlir::Value a, mlir::Value b) const;
  mlir::Value mul(mlir::Value a, mlir::Value b) const;
  mlir::Value div(mlir::Value a, mlir::Value b) const;
  mlir::Value rem(mlir::Value a, mlir::Value b) const;
  mlir::Value less(mlir::Value a, mlir::Value b) const;
  /// The number of this thread along x in the whole grid.
  mlir::Value globalThread(mlir::gpu::LaunchOp launch) const;
  /// One index for each extent, the last fastest.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value number,
                                             llvm::ArrayRef<mlir::OpFoldResult> extents) const;

private:
  DeviceIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type integer)
      : builder(builder), loc(loc), integer(integer) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type integer;
};

/// The product of extents that are all known, if it is at most 2^62.
std::optional<int64_t> staticProduct(llvm::ArrayRef<mlir::OpFoldResult> sizes);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_LAUNCHES_H
