// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_INFERENCE_RESTOREATTENTION_H
#define SHARDC_PASSES_INFERENCE_RESTOREATTENTION_H

#include "mlir/IR/Block.h"

namespace shardc {

/// Puts one op of attention, which drops nothing, in the place of each that the importer has
/// composed because it drops weights (dialects/aten/TrainingAttention.h). In a placed function the
/// op has no layout yet. Returns how many.
unsigned restoreAttention(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_PASSES_INFERENCE_RESTOREATTENTION_H
