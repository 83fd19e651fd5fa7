// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_PLACEMENT_MARKOWNROWS_H
#define SHARDC_PASSES_PLACEMENT_MARKOWNROWS_H

#include "passes/placement/FunctionGraph.h"

namespace shardc {

/// Marks the tensors between products with matrices that their rows name (dialects/aten/OwnRows.h):
/// where ranks have some of the matrices each, nothing of these tensors is reduced, and placement
/// need not count with it.
void markOwnRows(mlir::func::FuncOp function, FunctionGraph &graph);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_MARKOWNROWS_H
