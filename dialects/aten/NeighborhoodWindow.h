// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a query of neighborhood attention sees along one dim. The definition is that of Hassani et
// al., "Neighborhood Attention Transformer" (2023) and "Generalized Neighborhood Attention" (2025):
// a window of a fixed number of keys around the query, which is moved inwards where it would reach
// beyond the border, so that every query sees as many keys. With a dilation d, queries and keys
// whose positions are equal modulo d are a line of their own. With a stride s, s queries next to
// each other share the window of one of them. A causal window ends at its query, and has fewer keys
// at the start.
//
// Attention with a band of positions as its mask (|i - j| <= r) has windows that are not moved:
// what of them is beyond the border is cut off.
#ifndef SHARDC_DIALECTS_ATEN_NEIGHBORHOODWINDOW_H
#define SHARDC_DIALECTS_ATEN_NEIGHBORHOODWINDOW_H

#include "dialects/sharding/DimSplit.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shardc::aten {

struct Neighborhood {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool isCausal = false;
  /// The window is cut off at the border, and reaches this many keys behind its query; -1: it is
  /// not cut off. Then it has no stride, and is not called causal.
  int64_t cut = -1;

  bool operator==(const Neighborhood &) const = default;
  bool isCut() const { return cut >= 0; }
  /// A query sees itself alone.
  bool isIdentity() const { return kernel == 1 && stride == 1; }
  /// Whether queries may see fewer keys than `kernel`.
  bool mayLackKeys() const { return isCausal || isCut(); }

  /// At least as many queries as see one key, of a line of `size` elements; kDynamic: of any.
  int64_t mostQueries(int64_t size) const;

  /// The keys that query `query` of `size` sees: their positions are `begin`, `begin + dilation`,
  /// ... below `end`. There are `kernel` of them or, where it may lack keys, at most as
  /// many. `size` is at least `kernel * dilation`, unless the window is cut off.
  Run keysOf(int64_t query, int64_t size) const;
  /// How many these are.
  int64_t countOf(int64_t query, int64_t size) const;
};

/// From the first key that one of these queries sees to the last.
Run keysOfAll(const Neighborhood &neighborhood, Run queries, int64_t size);

/// One for each spatial dim.
using Neighborhoods = llvm::SmallVector<Neighborhood, 3>;

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_NEIGHBORHOODWINDOW_H
