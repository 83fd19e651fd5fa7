// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of results, by PyTorch's rules ("Tensor Attributes", section on type promotion, in
// its documentation): bool < integers < floats; tensors with dims decide before 0-dim tensors, and
// those before Python scalars, unless the later one is of a higher category.
#ifndef SHARDC_DIALECTS_ATEN_TYPEPROMOTION_H
#define SHARDC_DIALECTS_ATEN_TYPEPROMOTION_H

#include "mlir/IR/BuiltinTypes.h"

namespace shardc::aten {

enum class ScalarKind { Bool, Int, Float };

/// The element type that holds both. Null where PyTorch refuses: 8-bit floats with anything else,
/// and ui16, ui32, ui64 with anything but themselves and floats.
mlir::Type promoteTypes(mlir::Type lhs, mlir::Type rhs);

/// The element type in which an op on these tensors and Python scalars computes; null as above.
/// An importer turns a Python scalar beside tensors into a 0-dim constant of this type.
mlir::Type resultElementType(llvm::ArrayRef<mlir::RankedTensorType> tensors,
                             llvm::ArrayRef<ScalarKind> scalars = {});

/// The default float type, f32, for bools and integers; a float type stays.
mlir::Type toFloatType(mlir::Type type);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_TYPEPROMOTION_H
