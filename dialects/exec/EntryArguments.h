// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What passes rely on that read the arguments of entries.

#ifndef SHARDC_DIALECTS_EXEC_ENTRYARGUMENTS_H
#define SHARDC_DIALECTS_EXEC_ENTRYARGUMENTS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shardc::exec {

/// Fails, with an error for each, where an argument is no ranked memref or has no `exec.argument`.
mlir::LogicalResult verifyEntryArguments(mlir::FunctionOpInterface entry);

} // namespace shardc::exec

#endif // SHARDC_DIALECTS_EXEC_ENTRYARGUMENTS_H
