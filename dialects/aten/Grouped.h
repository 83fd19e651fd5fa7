// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_ATEN_GROUPED_H
#define SHARDC_DIALECTS_ATEN_GROUPED_H

#include "dialects/aten/Aten.h"

namespace shardc::aten {

/// On an op of one rank: the number of matrices on all ranks, where this one has some. Rows name
/// all of them, and those of others take no part: of as many rows for each matrix, the rank has its
/// share.
inline constexpr llvm::StringLiteral kAllMatricesAttr = "all_matrices";

} // namespace shardc::aten

#define GET_OP_CLASSES
#include "dialects/aten/Grouped.h.inc"

#endif // SHARDC_DIALECTS_ATEN_GROUPED_H
