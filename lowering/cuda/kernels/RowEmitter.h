// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The launches of a stage over rows. Each pass over a row combines what its reductions need, and
// stores the results that depend on the passes before.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_ROWEMITTER_H
#define SHARDC_LOWERING_CUDA_KERNELS_ROWEMITTER_H

#include "lowering/cuda/kernels/RowElements.h"

namespace shardc::cuda {

class RowEmitter {
public:
  RowEmitter(const KernelStage &stage, const RowSpace &space, mlir::OpBuilder &host);

  void emit();

private:
  /// One launch; `blocks` (null: 1) share each row.
  void makeLaunch(mlir::OpFoldResult blocks, llvm::function_ref<void(RowLaunch &)> body);
  llvm::SmallVector<const RowReduction *> reductionsOf(unsigned pass) const;
  llvm::SmallVector<const RowResult *> resultsOf(unsigned pass) const;
  llvm::SmallVector<mlir::Value> initsOf(RowLaunch &row, const RowReduction &reduction) const;
  llvm::SmallVector<TeamState> startOf(RowLaunch &row, unsigned pass) const;
  void finish(RowLaunch &row, unsigned pass, llvm::ArrayRef<TeamState> states) const;

  void emitTogether();
  void keepInSharedMemory(RowLaunch &row);
  void emitPass(RowLaunch &row, unsigned pass);
  void visit(RowChunk &chunk, unsigned pass, llvm::MutableArrayRef<TeamState> states) const;
  void loop(RowLaunch &row, unsigned pass, mlir::Value begin, mlir::Value step,
            llvm::MutableArrayRef<TeamState> states) const;
  void storeRowResults(RowLaunch &row, unsigned known, unsigned from) const;

  void emitSplit();
  void emitPart(unsigned pass, llvm::MutableArrayRef<llvm::SmallVector<mlir::Value>> partial);
  void emitCombination(unsigned pass, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> partial);
  void readScalars(RowLaunch &row, unsigned pass) const;

  void emitScan();

  const KernelStage &stage;
  const RowSpace &space;
  mlir::OpBuilder &host;
  mlir::Location loc;
  RowAccesses accesses;
  RowPlan plan;
  llvm::SmallVector<mlir::OpFoldResult> outerExtents, innerExtents;
  mlir::OpFoldResult rows, length;
  /// Of `Split`: blocks that share a row; and for each result of a reduction its value for each
  /// row.
  mlir::OpFoldResult splits;
  llvm::DenseMap<mlir::Value, mlir::Value> scalars;
  /// Chunks of the thread, of `Registers`.
  std::vector<std::unique_ptr<RowChunk>> chunks;
};

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_ROWEMITTER_H
