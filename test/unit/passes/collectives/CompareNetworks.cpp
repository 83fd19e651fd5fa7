// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/passes/collectives/CompareNetworks.h"

#include "passes/cost/core/ScaledModel.h"

#include <algorithm>
#include <array>

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

/// A bound of the step on a network, of all plans that take at most `nominalUs` on nominal times:
/// the busiest stream with as many latencies saved as the packing allows for which nominal times
/// have room (a fractional knapsack; buckets without bounds, and all time but the kernels' is
/// room).
static double leastStepUs(const Graph &graph, const cost::CostModel &model, double network,
                          double nominalUs, bool flat) {
  double room = nominalUs;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isKernel(node))
      room -= graph.durationUs(node) + model.launchUs();
  Problem problem(graph);
  BucketKeys keys(problem, {});
  double least = 0;
  for (GroupId group = 0; group != graph.numGroups(); ++group) {
    double stream = 0;
    std::vector<std::array<double, 2>> members; // packing over latency, latency
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      NodeId node = problem.nodeOf[task];
      if (!graph.isCollective(node) || graph.groupOf(node) != group)
        continue;
      cost::Group shape = graph.group(group).shape();
      double latency = model.latencyUs(graph.kindOf(node), shape);
      stream += model.collectiveUs(graph.kindOf(node), shape, graph.fullBytes(node));
      double us = flat ? 0 : packUs(problem, task, model) + unpackUs(problem, task, model);
      if (keys.keyOf(task) != none && latency > 0)
        members.push_back({us / latency, latency});
    }
    std::sort(members.begin(), members.end());
    double left = room;
    for (auto [share, latency] : members) {
      double part = share == 0 ? 1 : std::clamp(left / (share * latency), 0.0, 1.0);
      stream -= part * latency;
      left -= part * share * latency;
    }
    least = std::max(least, network * stream);
  }
  return least;
}

Comparison shardc::collectives::test::compareWithOthers(const Graph &graph,
                                                        const cost::CostModel &model,
                                                        const OptimizeOptions &options) {
  Comparison result;
  OptimizeResult ours = optimize(graph, model, options);
  if (!ours.error.empty()) {
    result.error = "ours: " + ours.error;
    return result;
  }
  std::vector<Scenario> scenarios;
  for (double network : comparedNetworks)
    scenarios.push_back({"", network, none, 0, 0});
  // The search has draws of its own.
  for (uint32_t seed = 101; seed != 106; ++seed)
    scenarios.push_back({"", 1, none, 0.2, seed});
  std::vector<double> steps = Replay(graph, ours.plan, model, options.flat).stepsUs(scenarios);
  OptimizeOptions other = options;
  other.policy = SchedulingPolicy::Defensive;
  for (bool bucket : {false, true}) {
    other.bucket = bucket;
    OptimizeResult defensive = optimize(graph, model, other);
    if (!defensive.error.empty())
      continue; // the program's own order takes too much
    Replay replay(graph, defensive.plan, model, options.flat);
    for (size_t i = 0; i != scenarios.size(); ++i)
      result.overDefensive = std::max(result.overDefensive, steps[i] / replay.stepUs(scenarios[i]));
  }
  other = options;
  other.robust = 0;
  double nominalUs = 0;
  for (size_t i = 0; i != std::size(comparedNetworks); ++i) {
    OptimizeResult own = optimize(graph, cost::ScaledModel(model, comparedNetworks[i]), other);
    if (!own.error.empty()) {
      result.error = "for a network: " + own.error;
      return result;
    }
    double ownUs = Replay(graph, own.plan, model, options.flat).stepUs(scenarios[i]);
    if (i == 0)
      nominalUs = ownUs * (1 + defaultRobust * largestNominalCost);
    result.overOwn.push_back(steps[i] / ownUs);
    result.least.push_back(leastStepUs(graph, model, comparedNetworks[i], nominalUs, options.flat) /
                           ownUs);
  }
  result.nominalOverBound =
      ours.after.stepUs / std::max(ours.bounds.lowerBoundNoLatencyUs, ours.bounds.criticalPathUs);
  return result;
}
