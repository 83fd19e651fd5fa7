// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_PASSES_INDEXTOVIEW_H
#define SHARDC_DIALECTS_ATEN_PASSES_INDEXTOVIEW_H

#include "dialects/aten/AffineForms.h"
#include "dialects/aten/Aten.h"

namespace shardc::aten {

/// The result of `op` as slices, selections, a permutation and an expansion of its operand, if
/// every index is a single position, or a range of consecutive ones along a dim of its own. Null
/// otherwise; nothing is built then.
mlir::Value buildIndexAsView(mlir::OpBuilder &builder, IndexOp op, const AffineForms &forms);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_PASSES_INDEXTOVIEW_H
