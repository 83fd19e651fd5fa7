// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the list scheduler with different choices and under different memory levels, and keeps the
// shortest schedule that meets a memory limit.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULESEARCH_H
#define SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULESEARCH_H

#include "passes/collectives/core/Buckets.h"
#include "passes/collectives/core/ListScheduler.h"
#include "passes/collectives/core/Plan.h"

#include <functional>
#include <optional>

namespace shardc::collectives {

/// A plan and why it is as it is.
struct Decision {
  Plan plan;
  /// By bucket of the plan.
  std::vector<CloseReason> closed;
  std::vector<uint64_t> capBytes;
  /// By node, for collectives in no bucket.
  std::vector<AloneReason> alone;
};

/// How many times as long as another a schedule may be at most to be worth more memory than is
/// free.
inline constexpr double worthMemory = 0.99;

/// Steps that differ by less are equal: the same kernels, added in another order.
inline constexpr double stepRounding = 1e-9;

struct SearchOptions {
  uint64_t memoryLimit = UINT64_MAX;
  bool bucket = true;
  BucketOptions buckets;
  bool flat = false;
  /// A schedule that takes more than this must be 1 % shorter than one that takes less.
  uint64_t freeBytes = UINT64_MAX;
  /// Whether to try all memory levels up to the limit, so that a higher limit only adds schedules;
  /// otherwise only the limit.
  bool everyLevel = true;
  /// About how many steps may be scheduled from the program's order, and a third as many from each
  /// other. The larger the program, the fewer choices are tried at each level, and the fewer
  /// levels. Those that are tried under a limit are also tried under each higher one.
  size_t work = SIZE_MAX;
  /// Where that does not suffice for all levels, to try the limit alone, from the first order
  /// alone.
  bool limitFirst = false;
  /// For each of these also merge only those collectives whose packing saves most latency for its
  /// time, until together they take so many microseconds.
  std::vector<double> packingUs = {};
  /// Called with each schedule that meets the limit, and the problem whose tasks it is about.
  std::function<void(const Problem &, const ScheduleResult &)> visit = nullptr;
};

/// Of a schedule with the tasks of `problem`.
Decision toDecision(const Problem &problem, ScheduleResult result);

struct SearchResult {
  /// Nothing if no schedule meets the limit.
  std::optional<Decision> best;
  unsigned candidates = 0;
  /// That of the best, or else the least of all schedules that were tried.
  uint64_t leastPeakBytes = UINT64_MAX;
};

/// What the largest collective holds from its start to its wait: its results, and operands that are
/// no inputs of the graph.
uint64_t largestInFlightBytes(const Graph &graph);

SearchResult searchSchedules(const Graph &graph, const cost::CostModel &model,
                             const SearchOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULESEARCH_H
