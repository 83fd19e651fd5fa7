// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NEIGHBORHOODSIZES_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NEIGHBORHOODSIZES_H

#include "importers/torch_export/program/Program.h"
#include "importers/torch_export/program/SymExpr.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace shardc::torch_export {

/// Calls `found` for each size that only a run knows along which the program has neighborhood
/// attention, with the least that it may be: the kernel size times the dilation.
void forEachNeighborhoodSize(const ExportedProgram &program,
                             llvm::function_ref<void(const SymExpr &size, int64_t least)> found);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_NEIGHBORHOODSIZES_H
