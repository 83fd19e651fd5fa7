// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/verify/core/LiveRanges.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace shardc {

std::vector<std::pair<uint32_t, uint32_t>> findOverlaps(std::span<const LiveRange> ranges,
                                                        const IsAbove &isAbove) {
  std::vector<uint32_t> begins(ranges.size()), ends(ranges.size());
  std::iota(begins.begin(), begins.end(), 0);
  std::iota(ends.begin(), ends.end(), 0);
  std::stable_sort(begins.begin(), begins.end(),
                   [&](uint32_t a, uint32_t b) { return ranges[a].first < ranges[b].first; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](uint32_t a, uint32_t b) { return ranges[a].last < ranges[b].last; });
  auto below = [&](uint32_t a, uint32_t b) {
    return std::pair(ranges[a].key, a) < std::pair(ranges[b].key, b);
  };
  // Those in use lie one above the other: a new one is compared with its neighbours, and what holds
  // of them holds of all others.
  std::set<uint32_t, decltype(below)> inUse(below);
  std::vector<std::pair<uint32_t, uint32_t>> overlaps;
  size_t ended = 0;
  for (uint32_t i : begins) {
    for (; ended < ends.size() && ranges[ends[ended]].last < ranges[i].first; ++ended)
      inUse.erase(ends[ended]);
    auto at = inUse.insert(i).first;
    if (at != inUse.begin() && !isAbove(i, *std::prev(at)))
      overlaps.push_back({*std::prev(at), i});
    if (auto next = std::next(at); next != inUse.end() && !isAbove(*next, i))
      overlaps.push_back({*next, i});
  }
  return overlaps;
}

} // namespace shardc
