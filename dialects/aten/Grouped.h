// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_GROUPED_H
#define SHARDC_DIALECTS_ATEN_GROUPED_H

#include "dialects/aten/Aten.h"

namespace shardc::aten {

/// On an op of one rank: the number of matrices on all ranks, where this one has some. Rows name
/// all of them, and those of others take no part: of as many rows for each matrix, the rank has its
/// share.
inline constexpr llvm::StringLiteral kAllMatricesAttr = "all_matrices";

/// On a product by index and the sum of outer products of its rows: [batches, parts]. Rows are
/// those of a `dispatch_rows`, and a row of a part names a matrix of that part, of as many equal
/// parts of all, or none.
inline constexpr llvm::StringLiteral kRowPartsAttr = "row_parts";

/// The attribute; {1, 1} where an op has none.
std::pair<int64_t, int64_t> rowPartsOf(mlir::Operation *op);
/// Says the same of `op`, which has the rows of `like`.
void copyRowParts(mlir::Operation *like, mlir::Operation *op);

} // namespace shardc::aten

#define GET_OP_CLASSES
#include "dialects/aten/Grouped.h.inc"

#endif // SHARDC_DIALECTS_ATEN_GROUPED_H
