// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lookups in a sharded dim at positions that follow a line (dialects/aten/LookupLine.h), and their
// adjoint: an exchange of intervals brings the rows that a rank's positions may name, or takes what
// was added to rows of others to them.
#ifndef SHARDC_PASSES_LOCALIZE_LINELOOKUPS_H
#define SHARDC_PASSES_LOCALIZE_LINELOOKUPS_H

#include "dialects/aten/LookupLine.h"
#include "passes/localize/Models.h"

namespace shardc {

LocalValues lookUpOnLine(Localizer &localizer, mlir::OpBuilder &builder, aten::IndexSelectOp op,
                         const aten::LookupLine &line, mlir::ValueRange operands);
LocalValues addOnLine(Localizer &localizer, mlir::OpBuilder &builder, aten::IndexPutOp op,
                      const aten::LookupLine &line, mlir::ValueRange operands);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_LINELOOKUPS_H
