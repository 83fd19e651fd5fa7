// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collective optimiser: buckets and schedule together, under a memory limit.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_OPTIMIZE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_OPTIMIZE_H

#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/RobustSearch.h"
#include "passes/collectives/core/Simulate.h"

#include <optional>

namespace shardc::collectives {

enum class SchedulingPolicy : uint8_t {
  /// The best of many schedules, by the cost model, in several scenarios (RobustSearch.h).
  Search,
  /// The one that needs no times: the order of the program, with starts as early and waits as late
  /// as data and memory allow, and buckets up to the caps (Defensive.h).
  Defensive,
};

struct OptimizeOptions {
  /// Bytes, counted as peak_hold_bytes. Without one: that of the unoptimised program plus 2 %, and
  /// room for `ahead` collectives.
  std::optional<uint64_t> memoryLimit;
  /// Without a limit: how many collectives of the largest size may be in flight, or have arrived,
  /// beside what the program holds. What is beyond the 2 % is taken only for a step that is 1 %
  /// shorter.
  unsigned ahead = 0;
  /// Merge collectives; otherwise those of the graph stay as they are.
  bool bucket = true;
  /// Move kernels, starts and waits; otherwise buckets are filled up to their caps in the order of
  /// the program (see FormBuckets.h).
  bool schedule = true;
  /// With `schedule`.
  SchedulingPolicy policy = SchedulingPolicy::Search;
  /// From 0 to 1: how much the times of slower networks, jittering kernels and late ranks count
  /// beside the nominal ones. At 1 the nominal step may be longer by 1 % for their sake.
  double robust = defaultRobust;
  BucketOptions buckets;
  /// Without `schedule` only: the order in which collectives join buckets.
  BucketOrder gathers = BucketOrder::FirstUse, reduces = BucketOrder::Production;
  /// Buckets need no packing: operands are stored side by side, results are used in place.
  bool flat = false;
};

struct BucketRecord {
  CollectiveKind kind = CollectiveKind::AllGather;
  GroupId group = 0;
  std::vector<NodeId> members;
  /// Full bytes, as the cap counts them.
  uint64_t bytes = 0;
  /// UINT64_MAX for `auto`.
  uint64_t capBytes = UINT64_MAX;
  CloseReason closed = CloseReason::Complete;
  /// Stalls behind its members in the unoptimised program, and behind the bucket.
  double exposedBeforeUs = 0, exposedAfterUs = 0;
  /// How long it takes, and how much longer it could take before something waits for it; infinity
  /// for what is never waited for.
  double durationUs = 0, slackUs = 0;
};

struct AloneRecord {
  NodeId node = 0;
  AloneReason reason = AloneReason::Cost;
  double exposedBeforeUs = 0, exposedAfterUs = 0;
  double durationUs = 0, slackUs = 0;
};

struct OptimizeResult {
  Plan plan;
  /// Of the graph as it is, of the plan, and of the plan when packing costs nothing.
  Figures before, after, afterFlat;
  Bounds bounds;
  /// In the standard scenarios, the first of which is the nominal one: of the graph as it is, and
  /// of the plan.
  std::vector<Scenario> scenarios;
  std::vector<double> stepsBeforeUs, stepsUs;
  uint64_t memoryLimit = 0;
  std::vector<BucketRecord> buckets;
  std::vector<AloneRecord> alone;
  /// Set if there is no plan: the memory limit cannot be met, or was not, or the plan did not pass
  /// checkPlan.
  std::string error;
  /// Where no order met the memory limit: the node that the lower bound of the memory is due to;
  /// `none` where that is due to inputs and outputs.
  NodeId boundNode = none;
  /// How many schedules were tried.
  unsigned candidates = 0;
};

/// What a plan that checkPlan accepts takes. Why its buckets are as they are is not known
/// (CloseReason::Given), and there is no memory limit.
OptimizeResult evaluatePlan(const Graph &graph, const cost::CostModel &model, Plan plan,
                            bool flat = false);

/// Finds the plan with the shortest simulated step, but for what `robust` gives away. It is never
/// longer than that of the program as it is, unless the memory limit is below what the program
/// takes. The result depends on nothing but the arguments. With `robust` 0 a higher memory limit
/// makes no step longer as the scheduler estimates it, which the simulation may be below; otherwise
/// it may, by what is given away for other times and what was gained for these under the lower one.
OptimizeResult optimize(const Graph &graph, const cost::CostModel &model,
                        const OptimizeOptions &options = {});

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_OPTIMIZE_H
