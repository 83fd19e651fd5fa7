// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What an elementwise op makes of numbers that are known, and of bounds of numbers.
#ifndef SHARDC_DIALECTS_ATEN_KNOWNNUMBERS_H
#define SHARDC_DIALECTS_ATEN_KNOWNNUMBERS_H

#include "dialects/aten/KnownElements.h"

namespace shardc::aten {

/// Rounds numbers to an element type; false where one of them is an integer that the type or a
/// double does not hold.
bool settle(mlir::Type type, llvm::MutableArrayRef<double> numbers);

/// Whether an op makes each number of its result of one number of each operand, and is known here.
bool isKnownElementwise(mlir::Operation *op);

/// The result of such an op of the operands' numbers, which are as many as the result's; nothing
/// where it is not known.
std::optional<Numbers> compute(mlir::Operation *op, llvm::MutableArrayRef<Numbers> operands);

/// Bounds of the result, from those of the operands.
std::optional<NumberRange> bound(mlir::Operation *op, llvm::ArrayRef<NumberRange> operands);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_KNOWNNUMBERS_H
