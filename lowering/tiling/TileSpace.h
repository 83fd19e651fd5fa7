// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common iteration space of a fused kernel: which loops of its ops run over the same dim, which
// dims are divided into tiles, and where each value lives.

#ifndef SHARDC_LOWERING_TILING_TILESPACE_H
#define SHARDC_LOWERING_TILING_TILESPACE_H

#include "lowering/target/Limits.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace shardc::tiling {

struct TiledDim {
  unsigned dim;
  int64_t size;
};

/// Dims of the kernel are numbered; each loop of each op, and each dim of each tensor, belongs to
/// one (a dim of a tensor that no op indexes by a loop belongs to none).
class TileSpace {
public:
  /// Fails with a diagnostic where the kernel is not one that can be tiled: an op whose operands
  /// are indexed by more than single loops and constants.
  /// `joinsRows`: several rows of few elements, next to each other, are one tile.
  static mlir::FailureOr<TileSpace> analyze(mlir::func::FuncOp kernel, const target::Limits &limits,
                                            bool joinsRows = false);

  /// Outermost first, each with its tile size (> 0).
  llvm::ArrayRef<TiledDim> tiledDims() const { return tiled; }
  /// 0 for a dim that is not tiled.
  int64_t tileSize(unsigned dim) const;
  /// Elements that one tile computes, summed over all ops (dynamic extents counted as 1024).
  int64_t tileWork() const { return work; }

  llvm::ArrayRef<unsigned> loopsOf(mlir::linalg::LinalgOp op) const;
  llvm::ArrayRef<std::optional<unsigned>> dimsOf(mlir::Value tensor) const;
  /// kDynamic where it is not known.
  int64_t extent(unsigned dim) const { return extents[dim]; }
  /// A value that has the dim, and its position: an argument of the kernel, a tensor made of one,
  /// or a `tensor.empty`.
  std::pair<mlir::Value, unsigned> extentSource(unsigned dim) const { return sources[dim]; }

  /// The memref in which a result is wanted: its own, or that of the op which it initialises. Null
  /// for a temporary.
  mlir::Value destinationOf(mlir::Value tensor) const { return destinations.lookup(tensor); }

private:
  struct Builder;

  llvm::SmallVector<TiledDim> tiled;
  int64_t work = 0;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<std::pair<mlir::Value, unsigned>> sources;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> loops;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::optional<unsigned>>> dims;
  llvm::DenseMap<mlir::Value, mlir::Value> destinations;
};

} // namespace shardc::tiling

#endif // SHARDC_LOWERING_TILING_TILESPACE_H
