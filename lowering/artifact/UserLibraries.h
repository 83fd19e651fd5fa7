// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The files that have the functions of operators that users have registered (exec.libraries).

#ifndef SHARDC_LOWERING_ARTIFACT_USERLIBRARIES_H
#define SHARDC_LOWERING_ARTIFACT_USERLIBRARIES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc::artifact {

/// Each file once, as an absolute path. An error names every function that its file does not have,
/// and every file that cannot be read.
llvm::Expected<std::vector<std::string>> findUserLibraries(mlir::ModuleOp lowered);

} // namespace shardc::artifact

#endif // SHARDC_LOWERING_ARTIFACT_USERLIBRARIES_H
