// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Places buffers with known lifetimes in one arena. IR-free: a pass fills the requests and applies
// the offsets.
//
// Time is counted in steps (positions of ops in a straight-line program). Two buffers conflict if
// their closed intervals [first, last] share a step; the plan guarantees that the byte ranges of
// conflicting buffers are disjoint.

#ifndef SHARDC_LOWERING_MEMORY_CORE_ARENAPLANNER_H
#define SHARDC_LOWERING_MEMORY_CORE_ARENAPLANNER_H

#include <cstdint>
#include <span>
#include <vector>

namespace shardc::memory {

struct ArenaRequest {
  /// May be 0: such a buffer gets an offset, but occupies nothing.
  uint64_t bytes = 0;
  /// First and last step at which the contents matter; first <= last.
  uint32_t first = 0;
  uint32_t last = 0;
};

struct ArenaPlan {
  /// One for each request, multiples of the alignment.
  std::vector<uint64_t> offsets;
  /// Size of the arena: the largest offset + bytes (aligned).
  uint64_t bytes = 0;
};

/// Places every request at a multiple of `alignment` (a power of two). Tries the two usual orders,
/// by size and by time, with best fit, and keeps the smaller arena. O(n log n + c) where c is the
/// number of conflicting pairs looked at, which is bounded by a multiple of n.
ArenaPlan planArena(std::span<const ArenaRequest> requests, uint64_t alignment);

/// The most bytes that are live at one step: no plan is smaller.
uint64_t peakLiveBytes(std::span<const ArenaRequest> requests, uint64_t alignment);

/// For sizes that are only known at run time. `plan` was made with representative sizes; result[i]
/// lists the requests directly below i: those that conflict with i, lie lower in `plan`, and are
/// not implied by another. With any sizes, taking requests in the order `order` and
///
///   offset(i) = max over b in below[i] of offset(b) + bytes(b), or 0
///
/// gives a plan without overlaps, because every conflicting pair stays ordered.
struct ArenaOrder {
  /// All requests, sorted so that each comes after those below it.
  std::vector<uint32_t> order;
  std::vector<std::vector<uint32_t>> below;
};
ArenaOrder orderArena(std::span<const ArenaRequest> requests, const ArenaPlan &plan);

} // namespace shardc::memory

#endif // SHARDC_LOWERING_MEMORY_CORE_ARENAPLANNER_H
