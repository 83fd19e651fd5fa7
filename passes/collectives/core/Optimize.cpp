// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Optimize.h"

#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/RobustSearch.h"

using namespace shardc;
using namespace shardc::collectives;

static std::string describeMisfit(uint64_t limit, uint64_t program, uint64_t least) {
  return "the memory limit of " + std::to_string(limit) +
         " bytes cannot be met: the program takes " + std::to_string(program) +
         " bytes at its peak, and the least that was found is " + std::to_string(least) +
         "; allow at least that much";
}

/// Buckets in program order, and why.
static std::optional<Decision> formOnly(const Graph &graph, const cost::CostModel &model,
                                        const OptimizeOptions &options, uint64_t limit,
                                        uint64_t &leastPeak) {
  Problem problem(graph);
  leastPeak = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
  if (leastPeak > limit)
    return std::nullopt;
  BucketKeys keys(problem, options.buckets);
  FormResult form =
      formBuckets(problem, model, keys,
                  {options.buckets, options.gathers, options.reduces, limit, options.flat});
  Decision decision{std::move(form.plan), std::move(form.closed), std::move(form.capBytes),
                    std::vector(graph.numNodes(), AloneReason::Cost)};
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    decision.alone[problem.nodeOf[task]] = form.alone[task];
  return decision;
}

static void record(const Graph &graph, const cost::CostModel &model, const Decision &decision,
                   bool flat, OptimizeResult &result) {
  std::vector<double> before, after;
  SimulateOptions options;
  options.exposedOf = &before;
  simulate(graph, model, options);
  options.exposedOf = &after;
  options.flat = flat;
  simulate(graph, decision.plan, model, options);

  Replay replay(graph, decision.plan, model, flat);
  std::vector<double> slack = replay.slackUs(graph.numNodes());
  result.scenarios = standardScenarios(graph, model);
  result.stepsUs = replay.stepsUs(result.scenarios);
  result.stepsBeforeUs = Replay(graph, identityPlan(graph), model).stepsUs(result.scenarios);
  auto durationUs = [&](NodeId node, uint64_t bytes) {
    return model.collectiveUs(graph.kindOf(node), graph.group(graph.groupOf(node)).shape(), bytes);
  };

  std::vector<bool> inBucket(graph.numNodes());
  for (BucketId id = 0; id != decision.plan.buckets.size(); ++id) {
    BucketRecord bucket;
    bucket.members = decision.plan.buckets[id];
    bucket.kind = graph.kindOf(bucket.members.front());
    bucket.group = graph.groupOf(bucket.members.front());
    bucket.capBytes = decision.capBytes[id];
    bucket.closed = decision.closed[id];
    bucket.exposedAfterUs = after[bucket.members.front()];
    for (NodeId member : bucket.members) {
      inBucket[member] = true;
      bucket.bytes += graph.fullBytes(member);
      bucket.exposedBeforeUs += before[member];
    }
    bucket.durationUs = durationUs(bucket.members.front(), bucket.bytes);
    bucket.slackUs = std::max(0.0, slack[bucket.members.front()]);
    result.buckets.push_back(std::move(bucket));
  }
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isCollective(node) && !inBucket[node])
      result.alone.push_back({node, decision.alone[node], before[node], after[node],
                              durationUs(node, graph.fullBytes(node)), std::max(0.0, slack[node])});
}

OptimizeResult shardc::collectives::optimize(const Graph &graph, const cost::CostModel &model,
                                             const OptimizeOptions &options) {
  OptimizeResult result;
  result.before = simulate(graph, model);
  result.bounds = computeBounds(graph, model);
  uint64_t peak = result.before.peakHoldBytes;
  uint64_t ample = peak + peak / 50;
  result.memoryLimit =
      options.memoryLimit.value_or(ample + options.ahead * largestInFlightBytes(graph));

  std::optional<Decision> decision;
  uint64_t leastPeak = 0;
  SearchOptions searched{result.memoryLimit, options.bucket, options.buckets, options.flat};
  if (!options.memoryLimit)
    searched.freeBytes = ample;
  if (options.schedule && options.policy == SchedulingPolicy::Defensive) {
    Problem problem(graph);
    leastPeak = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
    // It hides no more for a little more memory.
    searched.memoryLimit = std::min(searched.memoryLimit, searched.freeBytes);
    decision = defensiveSchedule(problem, model, searched);
    result.candidates = 1;
  } else if (options.schedule) {
    SearchResult search = searchRobust(graph, model, searched, options.robust);
    result.candidates = search.candidates;
    leastPeak = search.leastPeakBytes;
    decision = std::move(search.best);
  } else if (options.bucket) {
    decision = formOnly(graph, model, options, result.memoryLimit, leastPeak);
  } else {
    decision = Decision{identityPlan(graph), {}, {}, {graph.numNodes(), AloneReason::Cost}};
  }
  if (!decision) {
    result.error = describeMisfit(result.memoryLimit, peak, leastPeak);
    return result;
  }
  CheckOptions check{options.buckets.mixedDtype, options.buckets.groupsByName};
  result.error = checkPlan(graph, decision->plan, check);
  if (!result.error.empty()) {
    result.error = "the optimiser made an invalid plan (please report this): " + result.error;
    return result;
  }
  result.after = simulate(graph, decision->plan, model, {options.flat});
  // The program as it is may be better than what was found, if it keeps to the limit.
  if (options.schedule && options.policy == SchedulingPolicy::Search &&
      result.before.stepUs < result.after.stepUs && peak <= result.memoryLimit) {
    decision->plan = identityPlan(graph);
    decision->closed.clear();
    decision->capBytes.clear();
    result.after = simulate(graph, decision->plan, model, {options.flat});
  }
  result.afterFlat = simulate(graph, decision->plan, model, {true});
  record(graph, model, *decision, options.flat, result);
  result.plan = std::move(decision->plan);
  return result;
}
