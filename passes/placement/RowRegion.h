// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products whose rows name matrices by one index, and what is computed row by row between them.
#ifndef SHARDC_PASSES_PLACEMENT_ROWREGION_H
#define SHARDC_PASSES_PLACEMENT_ROWREGION_H

#include "dialects/aten/Grouped.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {

struct RowRegion {
  mlir::Value index;    ///< of all products
  int64_t matrices = 0; ///< that the index counts, of each product
  llvm::SmallVector<aten::IndexedMmOp> products;
  llvm::SetVector<mlir::Operation *> ops; ///< in the order of the block, products among them
  /// Rows that ops of the region read and others make.
  llvm::SetVector<mlir::Value> inputs;
  /// Rows that ops of the region make and others read.
  llvm::SetVector<mlir::Value> outputs;

  int64_t rows() const;
  bool isProduct(mlir::Operation *op) const;
};

/// The operands that have the rows of an op of a region along their first dim.
llvm::SmallVector<unsigned> rowOperands(const RowRegion &region, mlir::Operation *op);

/// The tensor of which an op looks up a row for each element of `index` (biases, one for each
/// matrix); null where it does not.
mlir::Value lookedUpBy(mlir::Operation *op, mlir::Value index);

/// The regions of a function: products by one index, with as many matrices. Those whose rows come
/// to a product in another way than as its rows are left out.
llvm::SmallVector<RowRegion> findRowRegions(mlir::func::FuncOp function);
/// The region of these products, as it is now; nothing where there is none.
std::optional<RowRegion> findRowRegion(mlir::func::FuncOp function,
                                       llvm::ArrayRef<aten::IndexedMmOp> products);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_ROWREGION_H
