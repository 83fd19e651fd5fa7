// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the stage `half-placed` promises about one op.

#ifndef SHARDC_PASSES_VERIFY_HALFPLACED_H
#define SHARDC_PASSES_VERIFY_HALFPLACED_H

#include "mlir/IR/Operation.h"

namespace shardc {

/// What is wrong with where the op's tensors have layouts and where they have none; empty if
/// nothing is. Placement decides about an op as a whole, so that its results have layouts all or
/// none; and what makes a result with a layout is placed itself. A redistribution may start from
/// anything.
std::string problemOfHalfPlacedOp(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_HALFPLACED_H
