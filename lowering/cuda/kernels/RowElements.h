// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Elements of a row, as many at a time as one access reads (a chunk), in the code of one launch.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ROWELEMENTS_H
#define SHARDC_LOWERING_CUDA_KERNELS_ROWELEMENTS_H

#include "lowering/cuda/kernels/RowLaunch.h"

namespace shardc::cuda {

class RowChunk {
public:
  /// `bounded`: the number is less than that of the row's chunks.
  RowChunk(RowLaunch &row, mlir::Value number, bool bounded);
  ~RowChunk();

  llvm::SmallVector<mlir::Value> elements(const ElementAccess &access);
  /// The states after this chunk.
  llvm::SmallVector<mlir::Value> accumulate(const RowReduction &reduction, mlir::ValueRange state);
  /// One element: the state after it, and what it yields for each result.
  std::pair<llvm::SmallVector<mlir::Value>, llvm::SmallVector<mlir::Value>>
  step(const RowReduction &reduction, unsigned element, mlir::ValueRange state);
  void store(const ElementAccess &result, mlir::ValueRange values);
  unsigned size() const { return lanes.size(); }

private:
  friend class ChunkElements;

  mlir::Value insideOf(unsigned element);
  mlir::Value positionOf(unsigned element, int dim);
  mlir::Value load(const ElementAccess &access, unsigned element);
  llvm::SmallVector<mlir::Value> loadScalars(const RowMemory &memory);
  llvm::SmallVector<mlir::Value> beginIn(const RowMemory &memory);
  llvm::SmallVector<mlir::Value> positionsIn(const RowMemory &memory, unsigned element);
  /// An element of one of the buffers of `RowLaunch`.
  mlir::Value slotOf(unsigned element);

  RowLaunch &row;
  mlir::Value number, first;
  /// Whether each element exists, and whether all do; null: always.
  llvm::SmallVector<mlir::Value> inside;
  mlir::Value whole;
  llvm::SmallVector<mlir::Value> start; // positions of the first element, of several inner dims
  std::vector<std::unique_ptr<ElementBuilder>> lanes;
  std::map<ElementAccess, llvm::SmallVector<mlir::Value>> loaded;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ROWELEMENTS_H
