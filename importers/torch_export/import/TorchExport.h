// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H

#include "importers/Importer.h"

namespace shardc::torch_export {

/// The importer of archives that torch.export.save writes. It takes any zip archive, so that one of
/// another kind gets an error that says so: importers of those come before it.
Importer getImporter();

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H
