// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_PASSES_RECOMPUTE_CORE_PEAKTREE_H
#define SHARDC_PASSES_RECOMPUTE_CORE_PEAKTREE_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace shardc::recompute {

/// The bytes in use at each step: adds to a range of steps, and finds the peak, each in logarithmic
/// time.
class PeakTree {
public:
  explicit PeakTree(uint32_t numSteps)
      : leaves(std::bit_ceil(std::max(numSteps, 1u))), top(2 * leaves), added(2 * leaves) {}

  /// Adds to the steps from `first` to `last`, both included; nothing where there are none.
  void add(uint32_t first, uint32_t last, int64_t bytes) {
    if (first <= last && bytes != 0)
      add(1, 0, leaves - 1, first, last, bytes);
  }

  int64_t peak() const { return top[1]; }
  /// The first step where the peak is.
  uint32_t peakStep() const {
    uint32_t node = 1;
    while (node < leaves)
      node = 2 * node + (top[2 * node] >= top[2 * node + 1] ? 0 : 1);
    return node - leaves;
  }

private:
  void add(uint32_t node, uint32_t begin, uint32_t end, uint32_t first, uint32_t last,
           int64_t bytes) {
    if (first <= begin && end <= last) {
      top[node] += bytes;
      added[node] += bytes;
      return;
    }
    uint32_t middle = begin + (end - begin) / 2;
    if (first <= middle)
      add(2 * node, begin, middle, first, last, bytes);
    if (last > middle)
      add(2 * node + 1, middle + 1, end, first, last, bytes);
    top[node] = std::max(top[2 * node], top[2 * node + 1]) + added[node];
  }

  uint32_t leaves;
  std::vector<int64_t> top, added;
};

} // namespace shardc::recompute

#endif // SHARDC_PASSES_RECOMPUTE_CORE_PEAKTREE_H
