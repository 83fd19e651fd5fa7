// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shardc::collectives {

/// A sequence of numbers with these operations in logarithmic time: add to a range, the maximum
/// from a position to the end, and the nearest position with more than some number. A node's `top`
/// is the maximum below it, its own `added` included.
class RangeMaxTree {
public:
  static constexpr int64_t lowest = std::numeric_limits<int64_t>::min() / 4;

  explicit RangeMaxTree(std::span<const int64_t> values);

  /// Adds `delta` to the positions [begin, end).
  void add(uint32_t begin, uint32_t end, int64_t delta);

  /// The maximum of the positions [begin, size); `lowest` or less if there are none.
  int64_t maxFrom(uint32_t begin) const;

  static constexpr uint32_t nowhere = UINT32_MAX;

  /// The first position from `begin` on with more than `value`; `nowhere` if there is none.
  uint32_t firstAbove(uint32_t begin, int64_t value) const;
  /// The last position before `end` with more than `value`; `nowhere` if there is none.
  uint32_t lastAbove(uint32_t end, int64_t value) const;

private:
  /// From a leaf up to the first subtree on the wanted side that has such a position, then down.
  template <bool forwards> uint32_t nearestAbove(uint32_t from, int64_t value) const;
  void apply(uint32_t node, int64_t delta);
  /// Returns whether the node's maximum changed.
  bool pull(uint32_t node);

  uint32_t leaves = 1;
  struct Node {
    int64_t top, added;
  };
  std::vector<Node> nodes; // the root is 1, leaves come last
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H
