// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of rows with the matrices that they name (aten.indexed_mm and its kin), as the host
// program takes them: a product for each run of rows that name the same.
#ifndef SHARDC_LOWERING_LINALG_GROUPEDROWS_H
#define SHARDC_LOWERING_LINALG_GROUPEDROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Brings the rows of each matrix together where there are more than `rows` of them on average (or
/// may be), and makes indices i64. Returns how many products got other rows.
unsigned bringRowsTogether(mlir::func::FuncOp function, int64_t rows);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_GROUPEDROWS_H
