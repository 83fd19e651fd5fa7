// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "importers/Input.h"

#include "llvm/ADT/SmallVector.h"

using namespace shardc;

static llvm::SmallVectorImpl<Importer> &registeredImporters() {
  static llvm::SmallVector<Importer, 4> importers;
  return importers;
}

void shardc::registerImporter(const Importer &importer) {
  registeredImporters().push_back(importer);
}

const Importer *shardc::findImporter(llvm::MemoryBufferRef file) {
  for (const Importer &importer : registeredImporters())
    if (importer.accepts(file))
      return &importer;
  return nullptr;
}

InputOptions &shardc::inputOptions() {
  static InputOptions options;
  return options;
}
