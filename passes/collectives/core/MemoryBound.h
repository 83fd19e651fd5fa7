// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory a program takes in whatever order it runs, so that a limit can be told from one
// that was only not met.
//
// When a task runs, certain storages are live in every order: those that it touches, and those that
// something before it touches and something after it. An output is live from its first use on. The
// most of any task is a lower bound of the peak, with or without buckets. So is what all outputs
// take, with the least that is live beside them when the last one begins.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_MEMORYBOUND_H
#define SHARDC_PASSES_COLLECTIVES_CORE_MEMORYBOUND_H

#include "passes/collectives/core/Problem.h"

namespace shardc::collectives {

struct MemoryBound {
  /// Bytes, counted as peak_hold_bytes. No order takes less; the best one may take more.
  uint64_t bytes = 0;
  /// The task during which they are live; `none` where inputs and outputs alone take as much.
  NodeId node = none;
};

/// O(tasks * storages / 64). In programs for which that is more than `maxWork`, only the largest
/// storages are followed from task to task, in which case the bound is lower.
MemoryBound memoryBound(const Problem &problem, uint64_t maxWork = uint64_t(1) << 28);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_MEMORYBOUND_H
