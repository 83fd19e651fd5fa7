// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What becomes of an element of memory and a value that is written to it (exec.scatter).

#ifndef SHARDC_LOWERING_LINALG_COMBINEELEMENTS_H
#define SHARDC_LOWERING_LINALG_COMBINEELEMENTS_H

#include "lowering/linalg/ScalarBuilder.h"

namespace shardc {

/// Both, and the result, as they are stored. `combine` is that of exec.scatter.
mlir::Value combineElements(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef combine,
                            mlir::Value before, mlir::Value value);

} // namespace shardc

#endif // SHARDC_LOWERING_LINALG_COMBINEELEMENTS_H
