// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "importers/Importer.h"

using namespace shardc;

const Importer *shardc::findImporter(llvm::ArrayRef<Importer> importers,
                                     llvm::MemoryBufferRef file) {
  for (const Importer &importer : importers)
    if (importer.accepts(file))
      return &importer;
  return nullptr;
}
