// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of a launch that computes elements of stored values: one for each dim of these values,
// with the strides at which they run through each memory. Neighbouring loops that are one loop in
// every memory are collapsed.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_LAUNCHDOMAIN_H
#define SHARDC_LOWERING_CUDA_KERNELS_LAUNCHDOMAIN_H

#include "lowering/cuda/kernels/Elements.h"
#include "lowering/cuda/kernels/Launches.h"

namespace shardc::cuda {

/// Elements between neighbours along a loop: a product of a number and of extents of the kernel, or
/// the sum of strides of the memory that are known when the kernel runs.
struct LoopStride {
  int64_t factor = 0;
  llvm::SmallVector<unsigned, 2> extents;   // dims of the kernel, in order
  llvm::SmallVector<unsigned, 1> positions; // dims of the memory, where nothing else is known

  bool isStatic() const { return extents.empty() && positions.empty(); }
  bool is(int64_t value) const { return isStatic() && factor == value; }
  bool operator==(const LoopStride &other) const {
    return positions.empty() && other.positions.empty() && factor == other.factor &&
           (factor == 0 || extents == other.extents);
  }
};

struct CollapsedLoop {
  llvm::SmallVector<unsigned, 2> members; // loops of the domain, outermost first
  mlir::OpFoldResult extent;
};

/// A memory that the launch reads or writes, at a position for each point.
struct LaunchAccess {
  ElementAccess element;
  mlir::Value memory;
  llvm::SmallVector<LoopStride, 4> strides; // of each collapsed loop
  mlir::Type elementType() const {
    return mlir::cast<mlir::MemRefType>(memory.getType()).getElementType();
  }
};

/// A value that the launch computes. Its dims are loops of the domain.
struct LaunchResult {
  mlir::OpResult value;
  llvm::SmallVector<int, 4> dims;
};

/// Rows of a table that an op reads at computed positions: the last position is that of a loop.
struct RowLookup {
  mlir::Operation *extract; // tensor.extract in the body of `op`
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<int, 4> loops;
  mlir::Value table; // memory
  unsigned loop;     // of the domain
};

class LaunchDomain {
public:
  /// A domain for each group of stored values that have the same dims.
  static std::vector<LaunchDomain> divide(const KernelStage &stage, mlir::OpBuilder &host);

  const KernelStage *stage;
  llvm::SmallVector<mlir::OpFoldResult> extents; // of each loop, none is known to be 1
  /// Of each loop; none where the kernel does not know with what else it has its extent in common:
  /// such a loop is like no other.
  llvm::SmallVector<std::optional<unsigned>> kernelDims;
  llvm::SmallVector<LaunchResult> results;
  llvm::SmallVector<CollapsedLoop> loops;
  std::vector<LaunchAccess> reads, writes;
  std::vector<RowLookup> lookups;

  llvm::SmallVector<mlir::OpFoldResult> loopExtents() const;
  /// The number of points.
  mlir::OpFoldResult points(mlir::OpBuilder &host) const;
  /// A bound of it and of all positions in memory, if all sizes and strides are known.
  std::optional<int64_t> positionBound() const;

private:
  LaunchResult describe(mlir::OpResult value) const;
  std::optional<LaunchResult> fit(mlir::OpResult value) const;
  void orderLoops();
  void findAccesses();
  void findPositions();
  void collapse(mlir::OpBuilder &host);
  bool canJoin(const CollapsedLoop &outer, unsigned inner) const;
  LoopStride strideOf(const ElementAccess &element, mlir::Value memory, unsigned loop) const;
  LoopStride times(LoopStride stride, mlir::OpFoldResult extent,
                   std::optional<unsigned> kernelDim) const;

  llvm::SmallVector<bool> isSeparate; // loops whose position is looked at by itself
};

/// The value of a stride in device code.
mlir::Value strideValue(const LaunchDomain &domain, const LaunchAccess &access, unsigned loop,
                        const DeviceIndex &index, mlir::OpBuilder &builder, mlir::Location loc);

/// Code for elements at a point of a domain.
class DomainElements : public ElementBuilder {
public:
  DomainElements(const LaunchDomain &domain, mlir::OpBuilder &builder, mlir::Location loc,
                 const DeviceIndex &index)
      : ElementBuilder(*domain.stage, builder, loc), domain(domain), index(index) {}

  /// Moves to another point: a position for each collapsed loop, in the type of `index`.
  void moveTo(llvm::ArrayRef<mlir::Value> to);
  /// The position of the point in a memory, as an index into its flat view.
  mlir::Value flatPosition(const LaunchAccess &access);
  mlir::Value flatMemory(const LaunchAccess &access);
  /// Computes all results and stores them.
  void computeAndStore();

protected:
  mlir::Value position(int loop) override;
  mlir::Value read(const ElementAccess &access) override;

  const LaunchDomain &domain;
  DeviceIndex index;
  llvm::SmallVector<mlir::Value> point;
  llvm::SmallVector<mlir::Value> positions; // of loops of the domain; null until asked for
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_LAUNCHDOMAIN_H
