// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How elements are compared where they are sorted (exec.sort).

#ifndef SHARDC_LOWERING_LINALG_SORTKEY_H
#define SHARDC_LOWERING_LINALG_SORTKEY_H

#include "lowering/linalg/ScalarBuilder.h"

namespace shardc {

/// The type of the key of an element of this type.
mlir::IntegerType sortKeyType(mlir::Type element);

/// An integer that is less, as a signed one, where the element (as it is stored) is to stand in
/// front. Both zeros are equal, and NaN is behind all other numbers.
mlir::Value sortKey(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value stored,
                    bool isUnsigned, bool descending);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_SORTKEY_H
