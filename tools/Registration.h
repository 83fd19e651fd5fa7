// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What every tool of the project that reads or writes IR knows: one list, so that they agree.

#ifndef SHARDC_TOOLS_REGISTRATION_H
#define SHARDC_TOOLS_REGISTRATION_H

#include "importers/Importer.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace shardc {

/// Our dialects and those upstream ones that our stages use, with their interface extensions.
void registerAllDialects(mlir::DialectRegistry &registry);

/// Every importer that there is, in the order in which a file is shown to them.
llvm::ArrayRef<Importer> allImporters();

} // namespace shardc

#endif // SHARDC_TOOLS_REGISTRATION_H
