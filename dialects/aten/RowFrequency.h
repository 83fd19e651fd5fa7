// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_ROWFREQUENCY_H
#define SHARDC_DIALECTS_ATEN_ROWFREQUENCY_H

#include "llvm/ADT/StringRef.h"

namespace shardc::aten {

/// Of an `aten.embedding`, a unit: its derivative divides what a row gets by how often the row is
/// read (PyTorch's `scale_grad_by_freq`).
inline constexpr llvm::StringLiteral kScaledByFrequencyAttr = "aten.scaled_by_frequency";

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_ROWFREQUENCY_H
