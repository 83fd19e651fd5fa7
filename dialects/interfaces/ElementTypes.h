// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of tensors as types of the IR.

#ifndef SHARDC_DIALECTS_INTERFACES_ELEMENTTYPES_H
#define SHARDC_DIALECTS_INTERFACES_ELEMENTTYPES_H

#include "support/ElementType.h"

#include "mlir/IR/Types.h"

#include <optional>

namespace shardc {

/// Integers with a sign are signless in the IR, those without are unsigned; bool is i1.
mlir::Type toIrType(mlir::MLIRContext *context, ElementType type);

/// Nothing for a type that tensors of a model do not have.
std::optional<ElementType> toElementType(mlir::Type type);

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_ELEMENTTYPES_H
