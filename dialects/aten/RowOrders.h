// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that are put in order, worked on row by row, and put back: a mixture of experts in groups
// does so. What is done to a row is the same wherever it stands, so that it can be done where it
// was.
#ifndef SHARDC_DIALECTS_ATEN_ROWORDERS_H
#define SHARDC_DIALECTS_ATEN_ROWORDERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc::aten {

/// Replaces a lookup of rows along the first dim at the positions of a permutation, where what is
/// looked up is computed row by row from rows that are in the opposite order: nothing is in that
/// order then. Rows that are used in it otherwise too stay, and the lookup with them. A lookup at
/// the positions of a sort, of what was sorted, gives the sort's values. Returns whether the lookup
/// is gone.
bool undoRowOrder(mlir::Operation *lookup);

/// The same for all lookups of a function; returns how many are gone.
unsigned undoRowOrders(mlir::func::FuncOp function);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_ROWORDERS_H
