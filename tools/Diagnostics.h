// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Diagnostics for people who have a model, not IR: the message, then the module path and line of
// source it is about.
#ifndef SHARDC_TOOLS_DIAGNOSTICS_H
#define SHARDC_TOOLS_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"

#include <string>
#include <vector>

namespace shardc {

/// Prints the errors and warnings of a context to stderr while it lives, and keeps its remarks for
/// a report.
class ModelDiagnostics {
public:
  explicit ModelDiagnostics(mlir::MLIRContext *context, bool printRemarks = false);
  ~ModelDiagnostics();

  struct Remark {
    std::string message, module, location;
  };
  const std::vector<Remark> &remarks() const { return kept; }

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);

  mlir::MLIRContext *context;
  bool printRemarks;
  mlir::DiagnosticEngine::HandlerID handler;
  std::vector<Remark> kept;
};

} // namespace shardc

#endif // SHARDC_TOOLS_DIAGNOSTICS_H
