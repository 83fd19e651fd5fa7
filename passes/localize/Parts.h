// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the parts are that slices, splits, joins, pads and reversals move.
#ifndef SHARDC_PASSES_LOCALIZE_PARTS_H
#define SHARDC_PASSES_LOCALIZE_PARTS_H

#include "dialects/aten/Aten.h"

namespace shardc {

/// Where a slice of static bounds begins.
int64_t startOf(aten::SliceOp op);

/// Where the list of amounts of a pad, which begins with the last dim, says how a dim is padded:
/// before it, and behind it in the next place. Beyond the end of the list for dims that are not
/// padded.
size_t amountsOf(aten::ConstantPadNdOp op, int64_t dim);

/// PiecesOpInterface for these ops.
void attachPieces(mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_PARTS_H
