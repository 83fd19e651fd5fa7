// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective taken apart into its tensors, and put together again from some: what merging,
// splitting and replacing collectives have in common.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_TRANSFERS_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_TRANSFERS_H

#include "dialects/dist/Dist.h"

#include "mlir/IR/Builders.h"

namespace shardc {

/// One tensor of a collective, with what the collective says of it.
struct Transfer {
  mlir::Value tensor;
  /// What is delivered.
  mlir::RankedTensorType result;
  /// -1 where the kind has none (CollectiveOpInterface).
  int64_t concatDim = -1, splitDim = -1;
  /// By position; empty for chunks. `kDynamic` entries, split extents first, are in `sizes`, and so
  /// is the full extent where it is an operand.
  llvm::SmallVector<int64_t> concatExtents, splitExtents;
  llvm::SmallVector<mlir::Value> sizes;
};

Transfer getTransfer(dist::CollectiveOpInterface op, unsigned tensor);
llvm::SmallVector<Transfer> getTransfers(dist::CollectiveOpInterface op);

/// A collective of the kind, reduction, root and pairs of `like` on other tensors. With `async` its
/// results are futures; a collective without tensors has none.
dist::CollectiveOpInterface buildCollective(mlir::OpBuilder &builder, mlir::Location location,
                                            dist::CollectiveOpInterface like,
                                            dist::GroupAttrInterface group,
                                            llvm::ArrayRef<Transfer> transfers, bool async = false);

/// All-gather, reduce-scatter, all-reduce of one tensor.
mlir::Value buildAllGather(mlir::OpBuilder &builder, mlir::Location location,
                           dist::GroupAttrInterface group, const Transfer &transfer);
mlir::Value buildReduceScatter(mlir::OpBuilder &builder, mlir::Location location,
                               dist::GroupAttrInterface group, Reduction reduction,
                               const Transfer &transfer);
mlir::Value buildAllReduce(mlir::OpBuilder &builder, mlir::Location location,
                           dist::GroupAttrInterface group, Reduction reduction, mlir::Value tensor);

/// The collective behind a value if it is synchronous and has this one tensor; else null. Buckets
/// are left as they are: what simplifies comes before what merges.
template <typename Op> Op singleCollective(mlir::Value value) {
  auto op = value.getDefiningOp<Op>();
  if (!op || op->getNumResults() != 1 || dist::CollectiveOpInterface(op).isAsync())
    return {};
  return op;
}

/// Extents by position of a dim of static size that is split by `list`, or in PyTorch's chunks
/// where the list is empty. Nothing where an entry is dynamic.
std::optional<llvm::SmallVector<int64_t>> extentsByPosition(llvm::ArrayRef<int64_t> list,
                                                            int64_t full, int64_t groupSize);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_TRANSFERS_H
