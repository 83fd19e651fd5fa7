// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sizes that were index operands and have become constants.
#ifndef SHARDC_DIALECTS_ATEN_CONSTANTSIZES_H
#define SHARDC_DIALECTS_ATEN_CONSTANTSIZES_H

#include "mlir/IR/Operation.h"

namespace shardc::aten {

/// Moves every index operand N of an aten op that is a constant into the op's attribute `static_N`.
/// True if there was one. Types stay as they are: infer them again (`inferAndSetTypes`).
bool foldConstantSizes(mlir::Operation *op);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_CONSTANTSIZES_H
