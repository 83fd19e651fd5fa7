// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_DIALECTS_DIST_EMITERRORS_H
#define SHARDC_DIALECTS_DIST_EMITERRORS_H

#include "mlir/IR/Diagnostics.h"

namespace shardc::dist {

/// Emits each message as an error of its own. Fails if there is one.
inline llvm::LogicalResult emitErrors(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                      llvm::ArrayRef<std::string> messages) {
  for (const std::string &message : messages)
    emitError() << message;
  return llvm::success(messages.empty());
}

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_EMITERRORS_H
