// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_KNOWNINDICES_H
#define SHARDC_DIALECTS_ATEN_KNOWNINDICES_H

#include "mlir/IR/Value.h"

namespace shardc::aten {

/// Whether all elements of an integer tensor are known to be at least 0 and less than `bound`,
/// because they are positions of a sort or an extreme, or constants, or chosen among such.
bool areIndicesBelow(mlir::Value tensor, int64_t bound);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_KNOWNINDICES_H
