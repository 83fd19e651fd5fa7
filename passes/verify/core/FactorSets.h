// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which iterations of a factor a mesh coordinate holds, read off the layout of a tensor.
#ifndef SHARDC_PASSES_VERIFY_CORE_FACTORSETS_H
#define SHARDC_PASSES_VERIFY_CORE_FACTORSETS_H

#include "dialects/sharding/ShardingRule.h"

namespace shardc {

/// A set of indices as ascending, disjoint, maximal intervals.
using IndexSet = std::vector<Run>;

/// `indices` of a dim made of factors of these sizes (outer to inner) as a product of one set for
/// each factor. Nothing where they are no such product. With several factors an empty set is a
/// product in many ways: then all sets are empty.
std::optional<std::vector<IndexSet>> factorize(std::span<const Run> indices,
                                               std::span<const int64_t> sizes);

/// The set that a coordinate holds of one factor, as a function of some mesh axes.
struct FactorSets {
  std::vector<unsigned> axes; ///< mesh axes that it may depend on
  std::vector<int64_t> sizes; ///< their sizes
  std::vector<IndexSet> sets; ///< row-major over `axes`
  /// Per set: nothing is held and several factors may be the reason; this one may hold anything.
  std::vector<bool> undetermined;

  static FactorSets all(int64_t size) { return {{}, {}, {{{0, size}}}, {false}}; }

  /// Index into `sets` at a full mesh coordinate.
  size_t at(std::span<const int64_t> coordinate) const;
  /// Whether coordinates that differ on this axis alone are known to hold different sets.
  bool dependsOn(unsigned axis) const;
  /// Whether it may depend on the axis through coordinates that hold nothing.
  bool isUndeterminedOn(unsigned axis) const;
};

/// The sets of all factors of a dim of `size` elements, whose layout splits it by `split`; empty
/// where some coordinate holds no product.
std::vector<FactorSets> factorSetsOfDim(const DimSplit &split, int64_t size,
                                        std::span<const int64_t> factorSizes, const Mesh &mesh);

/// Whether two functions have the same value at every coordinate.
bool sameSets(const FactorSets &a, const FactorSets &b, const Mesh &mesh);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_CORE_FACTORSETS_H
