// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_TORCHSCRIPT_TORCHSCRIPT_H
#define SHARDC_IMPORTERS_TORCHSCRIPT_TORCHSCRIPT_H

#include "importers/Importer.h"

namespace shardc::torchscript {

/// The importer of archives of torch.jit.save. Only a plugin can read their code, since only
/// libtorch knows it: a program beside the tools (lib/shardc/shardc-torchscript, or what the
/// environment variable SHARDC_TORCHSCRIPT names) that is run for such a file and answers with a
/// program in the form of torch.export. What a broken file does to libtorch ends with that process.
Importer getImporter();

} // namespace shardc::torchscript

#endif // SHARDC_IMPORTERS_TORCHSCRIPT_TORCHSCRIPT_H
