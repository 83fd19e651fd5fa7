// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A local search: small changes of a plan, each kept if the plan is better for it. A schedule is
// made by one rule from the beginning to the end. What that rule does badly in some places, and
// what should be packed for a slow network in some places but not in others, is mended here.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_REFINE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_REFINE_H

#include "passes/collectives/core/Replay.h"
#include "passes/collectives/core/ScheduleSearch.h"

namespace shardc::collectives {

struct RefineOptions {
  BucketOptions buckets = {};
  /// Whether buckets may change. They keep their members too where a list of caps says how large
  /// which bucket may be.
  bool merge = true;
  /// Buckets need no packing.
  bool flat = false;
  /// Bytes, counted as peak_hold_bytes. A plan that takes more may still take what it takes.
  uint64_t memoryLimit = UINT64_MAX;
  /// How many changes to try, and how many in a row that are of no use. No more are tried once so
  /// many events have been replayed.
  size_t tries = 0, failures = SIZE_MAX, events = SIZE_MAX;
  /// Simulated annealing: how much worse a change may make the plan, about, at the beginning. It
  /// falls to a thousandth of that while `events` are replayed. 0: not at all.
  double heat = 0;
};

/// How bad a plan is that takes so long in each scenario; infinite if it is of no use.
using Badness = std::function<double(std::span<const double> stepsUs)>;

/// The least bad plan that changes led to, or nothing if none is better: a kernel, a
/// start or a wait in another place; collectives of one key merged; a bucket taken apart; a
/// collective in another bucket. What is tried is drawn at random, the same for the same arguments.
///
/// `problem` is of the graph's own order, and `decision` has a plan that checkPlan accepts. A try
/// takes time for the distance of what it moves, and for what that delays.
std::optional<Decision> refine(const Problem &problem, const BucketKeys &keys,
                               const cost::CostModel &model, const Decision &decision,
                               std::span<const Scenario> scenarios, const Badness &badness,
                               const RefineOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_REFINE_H
