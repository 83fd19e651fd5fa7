// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// linalg.generic ops by what they compute: maps and reductions over one domain, with broadcasting.
// Tensors here have storage element types (ScalarBuilder.h).

#ifndef SHARDC_LOWERING_LINALG_TENSORBUILDER_H
#define SHARDC_LOWERING_LINALG_TENSORBUILDER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

namespace shardc {

class TensorBuilder {
public:
  using Sizes = llvm::SmallVector<mlir::OpFoldResult>;
  using Body = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>;
  using ReductionBody =
      llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange, mlir::Value accumulator)>;

  TensorBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  Sizes sizesOf(mlir::Value tensor) const;
  /// Sizes of the result of an op on these tensors: static ones from `shape`, others from the first
  /// of `operands`, aligned at the last dim, that has the dim.
  Sizes broadcastSizes(llvm::ArrayRef<int64_t> shape, mlir::ValueRange operands) const;

  /// One element of the result for each element of the domain. Operands are broadcast to it,
  /// aligned at the last dim.
  mlir::Value map(llvm::ArrayRef<mlir::OpFoldResult> domain, mlir::Type element,
                  mlir::ValueRange operands, Body body) const;
  /// The same with explicit indexing of operands.
  mlir::Value map(llvm::ArrayRef<mlir::OpFoldResult> domain, mlir::Type element,
                  mlir::ValueRange operands, llvm::ArrayRef<mlir::AffineMap> maps, Body body) const;

  /// Combines elements along the reduced dims of the domain, which become 1 (`keepdim`) or vanish.
  /// `initial` is the scalar it starts from, of type `element`.
  mlir::Value reduce(llvm::ArrayRef<mlir::OpFoldResult> domain, llvm::ArrayRef<bool> reduced,
                     bool keepdim, mlir::Value initial, mlir::ValueRange operands,
                     ReductionBody body) const;

  /// Product of the sizes of the reduced dims, as index.
  mlir::Value countReduced(llvm::ArrayRef<mlir::OpFoldResult> domain,
                           llvm::ArrayRef<bool> reduced) const;

  mlir::AffineMap broadcastMap(mlir::Value operand,
                               llvm::ArrayRef<mlir::OpFoldResult> domain) const;
  mlir::Value empty(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Type element) const;
};

/// Position of the current element along a dim of the domain; in bodies.
mlir::Value currentIndex(mlir::OpBuilder &builder, mlir::Location loc, unsigned dim);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_TENSORBUILDER_H
