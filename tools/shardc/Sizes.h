// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the dynamic sizes of a model are taken to be where something is predicted.
#ifndef SHARDC_TOOLS_SHARDC_SIZES_H
#define SHARDC_TOOLS_SHARDC_SIZES_H

#include "passes/report/CollectiveReport.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace shardc {

/// Every symbol of the module's functions with its value: that of `given` (`batch=8`), or a typical
/// one. Fails, after reporting all mistakes, where `given` makes no sense.
mlir::FailureOr<std::vector<AssumedSize>> assumeSizes(mlir::ModuleOp module,
                                                      llvm::ArrayRef<std::string> given);

/// `given`, and for every other symbol the largest value it may have: what a limit of memory is
/// checked for. Fails, with all symbols that have no such value.
mlir::FailureOr<std::vector<std::string>> largestSizes(mlir::ModuleOp module,
                                                       llvm::ArrayRef<std::string> given);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_SIZES_H
