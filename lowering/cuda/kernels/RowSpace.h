// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage whose reductions all run over the same dims: those are the positions of a row, and each
// combination of the others is a row. Between the reductions are maps, of positions or of rows.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ROWSPACE_H
#define SHARDC_LOWERING_CUDA_KERNELS_ROWSPACE_H

#include "lowering/cuda/kernels/Elements.h"
#include "lowering/cuda/kernels/Reductions.h"
#include "lowering/cuda/kernels/RowPlan.h"

namespace shardc::cuda {

/// An op with a reduction, and the pass that can compute it: pass n needs the results of the passes
/// before.
struct RowReduction {
  mlir::linalg::GenericOp op;
  ReductionCombiner combiner;
  unsigned pass;
};

/// A value that is stored, and the pass that stores it; of one without positions: the pass after
/// which it is known (0: before all).
struct RowResult {
  mlir::OpResult value;
  ElementAccess access;
  unsigned pass;
  bool hasPositions;
};

class RowSpace {
public:
  /// No value where the stage is not of this form.
  static std::optional<RowSpace> analyze(const KernelStage &stage);

  /// Dims, from the slowest in memory to the fastest. Dims of one element are in neither.
  llvm::ArrayRef<int> outer() const { return outerDims; }
  llvm::ArrayRef<int> inner() const { return innerDims; }
  bool isInner(int dim) const { return llvm::is_contained(innerDims, dim); }
  /// Neighbours in memory belong to different rows.
  bool isColumns() const { return columns; }

  llvm::ArrayRef<int> loopsOf(mlir::Operation *op) const { return loops.find(op)->second; }
  llvm::ArrayRef<RowReduction> reductions() const { return allReductions; }
  llvm::ArrayRef<RowResult> results() const { return allResults; }
  /// Passes over the row: the last one stores what depends on all reductions.
  unsigned passes() const { return passCount; }
  /// Whether an op has a result for each step of its reduction.
  bool isScan() const { return scan; }

  /// Whether an element is the same for all positions of a row.
  bool isOfRow(const ElementAccess &access) const;
  bool isReduction(mlir::Value value) const;
  /// Elements that a pass needs and one before it has had, and that one.
  const std::map<ElementAccess, unsigned> &kept() const { return keptElements; }
  /// The access whose order in memory decided that of the dims.
  const ElementAccess &leading() const { return leader; }
  llvm::ArrayRef<ElementAccess> reads() const { return allReads; }

  /// kUnknownSize where it is not known; their products.
  int64_t extent(int dim) const { return extents[dim]; }
  int64_t staticRows() const { return productOf(outerDims); }
  int64_t staticLength() const { return productOf(innerDims); }
  mlir::OpFoldResult extentOf(FusedKernel &kernel, int dim) const;
  /// Ops that the code of one element has.
  int64_t elementOps() const { return opCount; }

private:
  class Analysis;
  int64_t productOf(llvm::ArrayRef<int> dims) const;

  llvm::SmallVector<int> outerDims, innerDims;
  llvm::SmallVector<int64_t> extents;
  llvm::SmallVector<std::pair<mlir::linalg::LinalgOp, unsigned>> sources;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<int, 4>> loops;
  llvm::SmallVector<RowReduction> allReductions;
  llvm::SmallVector<RowResult> allResults;
  std::map<ElementAccess, unsigned> keptElements;
  std::vector<ElementAccess> allReads;
  ElementAccess leader;
  unsigned passCount = 0;
  int64_t opCount = 0;
  bool columns = false;
  bool scan = false;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ROWSPACE_H
