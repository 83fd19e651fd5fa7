// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shardc::collectives {

/// A sequence of numbers with two operations in logarithmic time: add to a range, and the maximum
/// from a position to the end. A node's `top` is the maximum below it, its own `added` included.
class RangeMaxTree {
public:
  static constexpr int64_t lowest = std::numeric_limits<int64_t>::min() / 4;

  explicit RangeMaxTree(std::span<const int64_t> values) {
    while (leaves < values.size())
      leaves *= 2;
    top.assign(2 * leaves, lowest);
    added.assign(leaves, 0);
    std::copy(values.begin(), values.end(), top.begin() + leaves);
    for (uint32_t node = leaves; --node != 0;)
      top[node] = std::max(top[2 * node], top[2 * node + 1]);
  }

  /// Adds `delta` to the positions [begin, end).
  void add(uint32_t begin, uint32_t end, int64_t delta) {
    if (begin >= end || delta == 0)
      return;
    uint32_t left = begin + leaves, right = end + leaves;
    for (uint32_t l = left, r = right; l < r; l /= 2, r /= 2) {
      if (l & 1)
        apply(l++, delta);
      if (r & 1)
        apply(--r, delta);
    }
    // Two paths up to where they meet, then one, which ends where nothing changes.
    uint32_t last = right - 1;
    while (left != last) {
      left /= 2;
      last /= 2;
      pull(left);
      if (left != last)
        pull(last);
    }
    while (left != 1) {
      left /= 2;
      if (!pull(left))
        return;
    }
  }

  /// The maximum of the positions [begin, size); `lowest` or less if there are none.
  int64_t maxFrom(uint32_t begin) const {
    if (begin >= leaves)
      return lowest;
    uint32_t node = begin + leaves;
    int64_t result = top[node];
    for (; node != 1; node /= 2) {
      if ((node & 1) == 0)
        result = std::max(result, top[node + 1]);
      result += added[node / 2];
    }
    return result;
  }

private:
  void apply(uint32_t node, int64_t delta) {
    top[node] += delta;
    if (node < leaves)
      added[node] += delta;
  }
  /// Returns whether the node's maximum changed.
  bool pull(uint32_t node) {
    int64_t value = std::max(top[2 * node], top[2 * node + 1]) + added[node];
    bool changed = top[node] != value;
    top[node] = value;
    return changed;
  }

  uint32_t leaves = 1;
  std::vector<int64_t> top, added;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_RANGEMAXTREE_H
