// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Editor support (LSP) for MLIR files that use the dialects of this project.

#include "tools/Registration.h"

#include "mlir/IR/Dialect.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  shardc::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
