// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that only look at their operand in another way: what TensorViewOpInterface answers with.
#ifndef SHARDC_DIALECTS_INTERFACES_TENSORVIEW_H
#define SHARDC_DIALECTS_INTERFACES_TENSORVIEW_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace shardc {

enum class ViewKind {
  Alias,       ///< the same tensor
  Copy,        ///< the same tensor, in memory of its own
  Reshape,     ///< the same elements in row-major order, in another shape
  Permutation, ///< the same elements, dims in another order
  Expansion,   ///< elements are repeated
  Part,        ///< elements are left out
};

/// Nothing for an op that is no view, or for none.
std::optional<ViewKind> viewKindOf(mlir::Operation *op);

/// The dim of operand 0 that each dim of the result is; nothing for an op that does not permute.
std::optional<llvm::SmallVector<int64_t>> permutationOf(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_TENSORVIEW_H
