// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H

namespace shardc::torch_export {

/// Registers the importer of archives that torch.export.save writes (importers/Input.h).
void registerTorchExportImporter();

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_TORCHEXPORT_H
