// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops compute in which element type under a precision that is lower than the model's.
#ifndef SHARDC_PASSES_TRAINING_PRECISIONPOLICY_H
#define SHARDC_PASSES_TRAINING_PRECISIONPOLICY_H

#include "mlir/IR/Operation.h"

namespace shardc::training {

/// The classes of torch.autocast.
enum class PrecisionClass {
  Short,   ///< takes its operands in the short type
  Wide,    ///< takes them in f32
  Promote, ///< takes them as they are, and its result follows by type promotion
};

PrecisionClass precisionOf(mlir::Operation *op);

} // namespace shardc::training

#endif // SHARDC_PASSES_TRAINING_PRECISIONPOLICY_H
