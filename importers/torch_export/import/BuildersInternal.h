// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares build<F> for every ATEN_SPECIAL(overload, F) of Overloads.def.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H

#include "importers/torch_export/import/Builders.h"

namespace shardc::torch_export {

#define ATEN(overload, op)
#define ATEN_DROPPED(overload)
#define ATEN_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#include "importers/torch_export/schema/Overloads.def"
#undef ATEN
#undef ATEN_DROPPED
#undef ATEN_SPECIAL

inline mlir::FailureOr<Results> one(mlir::FailureOr<mlir::Value> value) {
  if (failed(value))
    return mlir::failure();
  return Results{*value};
}

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H
