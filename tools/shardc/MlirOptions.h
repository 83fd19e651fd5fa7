// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR's own options (`--mlir-print-ir-after-all`, `--mlir-timing`, ...) as flags of commands.
#ifndef SHARDC_TOOLS_SHARDC_MLIROPTIONS_H
#define SHARDC_TOOLS_SHARDC_MLIROPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/CommandLine.h"

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace shardc {

/// The category that help lists them in.
llvm::cl::OptionCategory &mlirOptionCategory();

/// Makes MLIR's options known, as flags of these commands. Call it once, after all passes are
/// registered, which some of the options name.
void registerMlirOptions(llvm::ArrayRef<llvm::cl::SubCommand *> commands);

/// What the options say of a context that ModelDiagnostics does otherwise.
void applyMlirOptions(mlir::MLIRContext &context);

/// Whether to print what passes counted: `--pass-statistics`, or MLIR's own option for it.
bool wantsPassStatistics();

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_MLIROPTIONS_H
