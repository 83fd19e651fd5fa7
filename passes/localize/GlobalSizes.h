// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Global sizes of the dims of placed values, symbolic ones included. A local program must know
// them: the extent of a shard, and that of what a gather gives, follow from the global size and not
// from what one rank holds. Symbols come from the function's arguments (`dist.sizes`); what ops
// make of them is followed through index arithmetic and through what ops say of the sizes of their
// results (ResultSizesOpInterface).
#ifndef SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H
#define SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H

#include "dialects/dist/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shardc {

class GlobalSizes {
public:
  /// What is known of one dim: an expression, else the index value of the placed program that gives
  /// it, else neither.
  struct Known {
    dist::SizeAttr size;
    mlir::Value index;
  };

  /// Looks at every op of the function once.
  explicit GlobalSizes(mlir::func::FuncOp function);

  Known of(mlir::Value placed, int64_t dim) const;
  /// The expression that an index of the placed program has; null where there is none.
  dist::SizeAttr ofIndex(mlir::Value index) const;

private:
  void visit(mlir::Operation *op);
  class Symbolic;
  /// Of each result; nothing where an op does not say.
  llvm::SmallVector<llvm::SmallVector<Known>> infer(mlir::Operation *op) const;
  /// For all values of its symbols, as the function declares their ranges.
  bool isNotNegative(dist::SizeAttr size) const;

  mlir::func::FuncOp function;

  /// Values with dynamic dims only.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Known>> dims;
  llvm::DenseMap<mlir::Value, dist::SizeAttr> indices;
};

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_GLOBALSIZES_H
