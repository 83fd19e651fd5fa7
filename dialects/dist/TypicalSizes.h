// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a symbol is taken to be where something must be estimated before the run tells: the order of
// buffers in an arena, the cost of a collective.
#ifndef SHARDC_DIALECTS_DIST_TYPICALSIZES_H
#define SHARDC_DIALECTS_DIST_TYPICALSIZES_H

#include "dialects/dist/Dist.h"
#include "dialects/sharding/HaloCost.h"

#include <algorithm>

namespace shardc::dist {

/// Stands for a symbol of which nothing is known.
inline constexpr int64_t kTypicalSymbol = kTypicalSize;

/// Of a module: a dictionary of what each symbol of its functions is taken to be where something is
/// estimated (`dist-assume-sizes`).
inline constexpr llvm::StringLiteral kAssumedSizesAttr = "dist.assumed_sizes";

/// The value nearest to that in the symbol's range.
inline int64_t typicalValue(SymbolAttr symbol) {
  int64_t value = std::max(symbol.getMin(), kTypicalSymbol);
  return mlir::ShapedType::isDynamic(symbol.getMax()) ? value : std::min(symbol.getMax(), value);
}

} // namespace shardc::dist

#endif // SHARDC_DIALECTS_DIST_TYPICALSIZES_H
