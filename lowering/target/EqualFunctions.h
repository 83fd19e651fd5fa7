// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_TARGET_EQUALFUNCTIONS_H
#define SHARDC_LOWERING_TARGET_EQUALFUNCTIONS_H

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <unordered_map>

namespace shardc::target {

/// Finds functions that are equal to an earlier one but for their names and locations.
class EqualFunctions {
public:
  /// The first function that equals this one: it may be the function itself.
  mlir::FunctionOpInterface firstOf(mlir::FunctionOpInterface function);

private:
  std::unordered_map<size_t, llvm::SmallVector<mlir::FunctionOpInterface, 1>> different;
};

} // namespace shardc::target

#endif // SHARDC_LOWERING_TARGET_EQUALFUNCTIONS_H
