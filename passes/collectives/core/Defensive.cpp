// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Defensive.h"

#include "passes/collectives/core/FormBuckets.h"
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/Simulate.h"

using namespace shardc;
using namespace shardc::collectives;

std::optional<Decision> shardc::collectives::defensiveSchedule(const Problem &problem,
                                                               const cost::CostModel &model,
                                                               const SearchOptions &options) {
  const Graph &graph = problem.graph;
  if (MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes() > options.memoryLimit)
    return std::nullopt;
  Decision decision{identityPlan(graph), {}, {}, std::vector(graph.numNodes(), AloneReason::Cost)};
  if (options.bucket) {
    FormOptions form;
    form.buckets = options.buckets;
    if (form.buckets.caps.isAuto())
      form.buckets.caps = BucketCaps({defensiveBucketBytes / (1 << 20)});
    form.memoryLimit = options.memoryLimit;
    form.flat = options.flat;
    FormResult formed = formBuckets(problem, model, BucketKeys(problem, form.buckets), form);
    decision = toDecision(problem, {.plan = std::move(formed.plan),
                                    .closed = std::move(formed.closed),
                                    .capBytes = std::move(formed.capBytes),
                                    .alone = std::move(formed.alone)});
  }
  decision.plan =
      loosen(problem, decision.plan, {options.memoryLimit, options.flat, StartOrder::Kept});
  if (simulate(graph, decision.plan, model, {options.flat}).peakHoldBytes > options.memoryLimit)
    return std::nullopt;
  return decision;
}
