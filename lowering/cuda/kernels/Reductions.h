// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions shared by threads: how an op of linalg combines two partial results, and the exchange
// of partial results between the lanes of a warp and the warps of a block. Every order is fixed by
// the number of threads, so that results repeat bit for bit.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_REDUCTIONS_H
#define SHARDC_LOWERING_CUDA_KERNELS_REDUCTIONS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace shardc::cuda {

inline constexpr int64_t kWarpLanes = 32;

/// What the body of a reduction does with its accumulators, which are its `state`: one value for
/// each result.
class ReductionCombiner {
public:
  /// Fails, without a diagnostic, where two partial results of the op cannot be combined.
  static mlir::FailureOr<ReductionCombiner> match(mlir::linalg::GenericOp op);

  llvm::ArrayRef<mlir::Type> types() const { return stateTypes; }
  /// Results that are accumulators; others are written for every element (scans).
  llvm::ArrayRef<unsigned> results() const { return stateResults; }

  /// What a thread begins with. `inits` are the values from which the reduction starts.
  llvm::SmallVector<mlir::Value> start(mlir::OpBuilder &builder, mlir::Location loc,
                                       mlir::ValueRange inits) const;
  /// `first` is of earlier elements than `second`.
  llvm::SmallVector<mlir::Value> combine(mlir::OpBuilder &builder, mlir::Location loc,
                                         mlir::ValueRange first, mlir::ValueRange second) const;
  /// The result, of what the threads have found and what the reduction starts from.
  llvm::SmallVector<mlir::Value> finish(mlir::OpBuilder &builder, mlir::Location loc,
                                        mlir::ValueRange inits, mlir::ValueRange total) const;

private:
  /// One accumulator with an associative op, or the best element and its position.
  struct Part {
    unsigned state;
    mlir::Operation *combiner = nullptr; // of one accumulator
    unsigned accumulator = 0;            // its operand
    // Of a best element: the element, its accumulator, and whether the one replaces the other. The
    // position is the next state.
    mlir::Value element, best, better;
  };

  llvm::SmallVector<mlir::Type> stateTypes;
  llvm::SmallVector<unsigned> stateResults;
  llvm::SmallVector<Part> parts;
};

/// The value of the lane whose number differs by the bits of `mask`. All lanes of the warp take
/// part.
mlir::Value shuffleXor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                       int64_t mask);
/// The value of the lane `offset` lanes before; the first lanes of the warp get any value.
mlir::Value shuffleUp(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      int64_t offset);
/// The value of a lane of the warp.
mlir::Value shuffleFrom(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                        mlir::Value lane);

/// Shared memory of a launch, handed out as buffers of one dim. Between two uses of a buffer by
/// different passes lies a barrier, because a buffer rests for one pass.
class SharedBuffers {
public:
  explicit SharedBuffers(mlir::gpu::LaunchOp launch) : launch(launch) {}
  mlir::Value take(mlir::Type element, int64_t count);
  /// Buffers that were taken before the last call are free again. Each pass has a barrier.
  void nextPass();

private:
  struct Buffer {
    mlir::Value memory;
    int passes; // since it was taken; 2: free
  };
  mlir::gpu::LaunchOp launch;
  llvm::SmallVector<Buffer> buffers;
};

/// Threads that share a row: `size` of them (a power of two), of which this is number `rank`.
struct RowTeam {
  int64_t size = 1;
  mlir::Value rank;
  /// Of the block: rows, and which of them is the team's.
  int64_t rows = 1;
  mlir::Value row;
  /// Consecutive threads have neighbouring rows, not neighbouring positions of one.
  bool columns = false;
};

/// States of several reductions, each with its combiner.
struct TeamState {
  const ReductionCombiner *combiner;
  llvm::SmallVector<mlir::Value> values;
};

/// The combination of the states of a team's threads; all of its threads get it. All threads of
/// the block take part.
void reduceTeam(mlir::OpBuilder &builder, mlir::Location loc, const RowTeam &team,
                llvm::MutableArrayRef<TeamState> states, SharedBuffers &shared);

/// The combination of the states of the threads before this one (`before`; of the first thread:
/// anything), and of all threads (`all`). All threads of the block take part, and a barrier
/// follows before the next scan.
struct TeamScan {
  llvm::SmallVector<mlir::Value> before, all;
};
TeamScan scanTeam(mlir::OpBuilder &builder, mlir::Location loc, const RowTeam &team,
                  const TeamState &state, SharedBuffers &shared);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_REDUCTIONS_H
