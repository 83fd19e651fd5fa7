// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Declares build<F> for every row of Overloads.def and of ComplexOverloads.def that names an F.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H

#include "importers/torch_export/import/Builders.h"

namespace shardc::torch_export {

#define ATEN(overload, op)
#define ATEN_BACKWARD(overload, op)
#define ATEN_DROPPED(overload)
#define ATEN_VIEW(overload)
#define C10D_WAIT(overload)
#define ATEN_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#define PRIM_SPECIAL(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#define C10D(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#include "importers/torch_export/schema/Overloads.def"
#undef ATEN
#undef ATEN_BACKWARD
#undef ATEN_DROPPED
#undef ATEN_VIEW
#undef C10D_WAIT
#undef ATEN_SPECIAL
#undef PRIM_SPECIAL
#undef C10D

#define COMPLEX(overload, f) mlir::FailureOr<Results> build##f(Call &call);
#define COMPLEX_PARTS(overload)
#include "importers/torch_export/schema/ComplexOverloads.def"
#undef COMPLEX
#undef COMPLEX_PARTS

inline mlir::FailureOr<Results> one(mlir::FailureOr<mlir::Value> value) {
  if (failed(value))
    return mlir::failure();
  return Results{*value};
}

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_BUILDERSINTERNAL_H
