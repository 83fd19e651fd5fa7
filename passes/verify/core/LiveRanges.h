// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether buffers that are in use at the same time lie apart. IR-free: it knows of each buffer from
// when to when it is in use, and asks its caller whether one lies above another.

#ifndef SHARDC_PASSES_VERIFY_CORE_LIVERANGES_H
#define SHARDC_PASSES_VERIFY_CORE_LIVERANGES_H

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace shardc {

struct LiveRange {
  /// First and last step at which the buffer is in use, both inclusive; first <= last.
  uint32_t first = 0;
  uint32_t last = 0;
  /// Where it lies among others: of two that are in use together, the one with the larger key is
  /// claimed to begin where the other has ended, or above.
  int64_t key = 0;
};

/// Whether buffer `high` begins where buffer `low` has ended, or above. Must be transitive.
using IsAbove = std::function<bool(uint32_t high, uint32_t low)>;

/// Pairs (of which the second came into use later, or together) that are in use at one step, and
/// for which neither lies above the other in the order of keys. Nothing if and only if all buffers
/// in use at one step lie apart; otherwise some of the pairs that do not. O(n log n), with at most
/// two questions for each buffer.
std::vector<std::pair<uint32_t, uint32_t>> findOverlaps(std::span<const LiveRange> ranges,
                                                        const IsAbove &isAbove);

} // namespace shardc

#endif // SHARDC_PASSES_VERIFY_CORE_LIVERANGES_H
