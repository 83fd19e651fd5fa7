// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that name matrices (aten.indexed_mm), between one product with them and the next. Where each
// rank has some of the matrices, a product gives each rank the rows that name its own; if all that
// is done with a row in between is done row by row, and all that reads it in the end is a product
// that passes over the rows of others, then nobody needs the whole tensor.
#ifndef SHARDC_DIALECTS_ATEN_OWNROWS_H
#define SHARDC_DIALECTS_ATEN_OWNROWS_H

#include "dialects/sharding/ShardingRule.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace shardc::aten {

/// What one op does with rows, which its operand or result has along a dim.
struct RowUse {
  mlir::Operation *op;
  unsigned operand;
  int64_t dim;
};

class OwnRows {
public:
  /// `isOwner` says of a product by index, or a lookup by it, whether its matrices (or the rows
  /// that are looked up) are shared out as is asked for. `isWhole` says of what becomes of rows
  /// whether each of these ranks has all of it: what is cut and gathered again comes from others.
  OwnRows(llvm::function_ref<bool(mlir::Operation *)> isOwner,
          llvm::function_ref<bool(mlir::Value)> isWhole)
      : isOwner(isOwner), isWhole(isWhole) {}

  /// Whether all that becomes of the rows of `tensor` along `dim` is read by owners of the matrices
  /// that `index` names.
  bool readByOwners(mlir::Value tensor, int64_t dim, mlir::Value index);

  /// The index whose owners have the rows of a tensor along `dim` complete, where other ranks have
  /// zero or nothing of use; null where there is none. `isPartial` says whether a tensor is
  /// complete on its owners only.
  mlir::Value ownersOf(mlir::Value tensor, int64_t dim,
                       llvm::function_ref<bool(mlir::Value)> isPartial);

private:
  llvm::function_ref<bool(mlir::Operation *)> isOwner;
  llvm::function_ref<bool(mlir::Value)> isWhole;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, std::pair<int64_t, bool>> known;
};

/// The tensor itself, of which only the layout was changed.
mlir::Value lookThroughIdentities(mlir::Value value);

/// Whether the op does to a row what it does to every other, of those that its sharding rule says
/// to be independent.
bool worksRowByRow(mlir::Operation *op);

/// The dim that is this one factor and nothing else; nothing where the factor has several dims or
/// parts of one.
std::optional<int64_t> dimOfFactor(const TensorFactors &tensor, unsigned factor);

/// The dim of each result that has the rows which an operand has along `dim`, where the op works
/// row by row; nothing where it does not.
std::optional<llvm::SmallVector<int64_t>> rowDimsOfResults(mlir::Operation *op, unsigned operand,
                                                           int64_t dim);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_OWNROWS_H
