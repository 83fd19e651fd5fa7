// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of the user's tensors a value is.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_TENSORNAMES_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_TENSORNAMES_H

#include "mlir/IR/Value.h"

namespace shardc {

/// What computed a value, behind ops that only look at it in another way, copy it or cast it.
mlir::Value behindViews(mlir::Value value);

/// The name of the parameter, buffer or input that a value is, seen through the ops above; empty
/// where it is none.
llvm::StringRef nameOfSource(mlir::Value value);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_TENSORNAMES_H
