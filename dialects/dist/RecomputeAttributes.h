// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a plan says about memory between forward and backward, and what was made of it.

#ifndef SHARDC_DIALECTS_DIST_RECOMPUTEATTRIBUTES_H
#define SHARDC_DIALECTS_DIST_RECOMPUTEATTRIBUTES_H

#include "llvm/ADT/StringRef.h"

namespace shardc::dist {

/// On a module, from the plan: array of patterns of module paths whose forward the backward
/// computes again.
inline constexpr llvm::StringLiteral kRecomputeAttr = "dist.recompute";
/// On a module, from the plan: bool; absent: as the compiler finds best.
inline constexpr llvm::StringLiteral kReshardAfterForwardAttr = "dist.reshard_after_forward";
/// On a function, from dist-recompute: {peak_before_bytes, peak_bytes, added_us, choices =
/// [{module, location, what, bytes, us, required}, ...]}, one entry for each op whose results the
/// backward computes again. Where memory was planned to choose: planned_before_bytes and
/// planned_bytes too.
inline constexpr llvm::StringLiteral kRecomputedAttr = "dist.recomputed";
/// On a module: {without_bytes, least_bytes} where no recomputation that was found meets the memory
/// limit: what a rank needs without any, and with the one that the program has, which takes least.
inline constexpr llvm::StringLiteral kLeastMemoryAttr = "dist.least_memory";

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_RECOMPUTEATTRIBUTES_H
