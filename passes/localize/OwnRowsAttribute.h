// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_PASSES_LOCALIZE_OWNROWSATTRIBUTE_H
#define SHARDC_PASSES_LOCALIZE_OWNROWSATTRIBUTE_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

/// Discardable attribute of a redistribution from P(sum) to R: of its result, each rank reads only
/// those rows that are complete in its part (dialects/aten/OwnRows.h). So nothing is reduced.
inline constexpr llvm::StringLiteral kOwnRowsAttr = "dist.own_rows";

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_OWNROWSATTRIBUTE_H
