// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/Optimize.h"

#include "passes/collectives/core/CheckPlan.h"
#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/MemoryBound.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/RobustSearch.h"

using namespace shardc;
using namespace shardc::collectives;

/// Why there is no plan: because there can be none, or because none was found.
static std::string describeMisfit(const Graph &graph, uint64_t limit, uint64_t program,
                                  uint64_t least, const MemoryBound &bound) {
  auto bytes = [](uint64_t number) { return std::to_string(number) + " bytes"; };
  std::string proof = "in every order " + bytes(bound.bytes) + " are live at once, " +
                      (bound.node == none ? "by the end of the program for its inputs and outputs"
                                          : "when '" + graph.nameOf(bound.node) + "' runs");
  std::string found = "the program takes " + bytes(program) +
                      " at its peak, and the least that was found is " + std::to_string(least) +
                      "; allow at least that much";
  if (limit < bound.bytes)
    return "the memory limit of " + bytes(limit) + " cannot be met: " + proof + "; " + found;
  return "no order was found that meets the memory limit of " + bytes(limit) + ": " + found +
         " (that there is none is not proved: " + proof + ")";
}

/// The same where the order of the program is kept.
static std::string describeMisfit(uint64_t limit, uint64_t program) {
  return "the memory limit of " + std::to_string(limit) +
         " bytes cannot be met in the order of the program, which takes " +
         std::to_string(program) + " bytes at its peak; allow at least that much, or a new order";
}

/// Buckets in program order, and why.
static std::optional<Decision> formOnly(const Graph &graph, const cost::CostModel &model,
                                        const OptimizeOptions &options, uint64_t limit,
                                        std::string &error) {
  Problem problem(graph);
  uint64_t peak = MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes();
  if (peak > limit) {
    error = describeMisfit(limit, peak);
    return std::nullopt;
  }
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

/// Takes more memory than is free only where that is worth it, as the search does.
static std::optional<Decision> defensive(const Graph &graph, const cost::CostModel &model,
                                         SearchOptions options, OptimizeResult &result) {
  Problem problem(graph);
  std::optional<Decision> best;
  for (uint64_t limit : {std::min(options.memoryLimit, options.freeBytes), options.memoryLimit}) {
    if (result.candidates != 0 && limit <= options.freeBytes)
      break;
    options.memoryLimit = limit;
    ++result.candidates;
    auto stepUs = [&](const Decision &of) {
      return simulate(graph, of.plan, model, {options.flat}).stepUs;
    };
    if (auto made = defensiveSchedule(problem, model, options);
        made && (!best || stepUs(*made) < worthMemory * stepUs(*best)))
      best = std::move(made);
  }
  if (!best)
    result.error = describeMisfit(options.memoryLimit,
                                  MemoryTracker(problem, UINT64_MAX, options.flat).basePeakBytes());
  return best;
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

OptimizeResult shardc::collectives::evaluatePlan(const Graph &graph, const cost::CostModel &model,
                                                 Plan plan, bool flat) {
  OptimizeResult result;
  result.before = simulate(graph, model);
  result.bounds = computeBounds(graph, model);
  result.memoryLimit = UINT64_MAX;
  result.after = simulate(graph, plan, model, {flat});
  result.afterFlat = simulate(graph, plan, model, {true});
  size_t buckets = plan.buckets.size();
  Decision decision{std::move(plan), std::vector(buckets, CloseReason::Given),
                    std::vector<uint64_t>(buckets, UINT64_MAX),
                    std::vector(graph.numNodes(), AloneReason::Given)};
  record(graph, model, decision, flat, result);
  result.plan = std::move(decision.plan);
  return result;
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
  SearchOptions searched{result.memoryLimit, options.bucket, options.buckets, options.flat};
  if (!options.memoryLimit)
    searched.freeBytes = ample;
  if (options.schedule && options.policy == SchedulingPolicy::Defensive) {
    decision = defensive(graph, model, searched, result);
  } else if (options.schedule) {
    SearchResult search = searchRobust(graph, model, searched, options.robust);
    result.candidates = search.candidates;
    decision = std::move(search.best);
    if (!decision) {
      MemoryBound bound = memoryBound(Problem(graph));
      result.boundNode = bound.node;
      result.error = describeMisfit(graph, result.memoryLimit, peak, search.leastPeakBytes, bound);
    }
  } else if (options.bucket) {
    decision = formOnly(graph, model, options, result.memoryLimit, result.error);
  } else {
    decision = Decision{identityPlan(graph), {}, {}, {graph.numNodes(), AloneReason::Cost}};
  }
  if (!decision)
    return result;
  CheckOptions check{options.buckets.mixedDtype, options.buckets.groupsByName};
  result.error = checkPlan(graph, decision->plan, check);
  if (!result.error.empty()) {
    result.error = "the optimiser made an invalid plan (please report this): " + result.error;
    return result;
  }
  result.after = simulate(graph, decision->plan, model, {options.flat});
  // The program as it is may be better than what was found, if it keeps to the limit.
  if (options.schedule && options.policy == SchedulingPolicy::Search &&
      result.before.stepUs < result.after.stepUs * (1 - stepRounding) &&
      peak <= result.memoryLimit) {
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
