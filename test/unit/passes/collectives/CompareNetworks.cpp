// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "test/unit/passes/collectives/CompareNetworks.h"

#include "passes/cost/core/ScaledModel.h"

#include <algorithm>
#include <array>
#include <limits>

using namespace shardc;
using namespace shardc::collectives;
using namespace shardc::collectives::test;

namespace {

/// By task, the longest way on a network of which every plan has each part: from the beginning of
/// the program to the start of a collective, and from its end to the end of the program. What
/// shares a bucket takes no less than it would alone.
struct Ways {
  Ways(const Problem &problem, const cost::CostModel &model, double network)
      : before(problem.numTasks()), behind(problem.numTasks()) {
    TaskTimes times(problem, model);
    std::vector<double> fromStart(problem.numTasks());
    auto us = [&](TaskId task) {
      return times.us[task] * (problem.isCollective(task) ? network : 1);
    };
    for (TaskId task = 0; task != problem.numTasks(); ++task)
      for (const Dependence &d : problem.before[task]) {
        bool startOnly = problem.isCollective(d.task) && !d.complete;
        before[task] = std::max(before[task], before[d.task] + (startOnly ? 0 : us(d.task)));
      }
    for (TaskId task = problem.numTasks(); task-- != 0;) {
      for (const Dependence &d : problem.after[task])
        if (problem.isCollective(task) && !d.complete)
          fromStart[task] = std::max(fromStart[task], fromStart[d.task]);
        else
          behind[task] = std::max(behind[task], fromStart[d.task]);
      fromStart[task] = std::max(fromStart[task], us(task) + behind[task]);
    }
  }
  std::vector<double> before, behind;
};

} // namespace

/// The busiest stream with as many latencies saved as the packing allows for which nominal times
/// have room (a fractional knapsack; buckets without bounds, and all time but the kernels' is
/// room), between what comes before whichever collective is the first and what comes behind
/// whichever is the last.
double shardc::collectives::test::leastStepUs(const Graph &graph, const cost::CostModel &model,
                                              double network, double nominalUs, bool flat) {
  double room = nominalUs;
  for (NodeId node = 0; node != graph.numNodes(); ++node)
    if (graph.isKernel(node))
      room -= graph.durationUs(node) + model.launchUs();
  Problem problem(graph);
  BucketKeys keys(problem, {});
  Ways ways(problem, model, network);
  double least = 0;
  for (GroupId group = 0; group != graph.numGroups(); ++group) {
    double stream = 0, before = std::numeric_limits<double>::infinity(), behind = before;
    std::vector<std::array<double, 2>> members; // packing over latency, latency
    for (TaskId task = 0; task != problem.numTasks(); ++task) {
      NodeId node = problem.nodeOf[task];
      if (!graph.isCollective(node) || graph.groupOf(node) != group)
        continue;
      before = std::min(before, ways.before[task]);
      behind = std::min(behind, ways.behind[task]);
      cost::Group shape = graph.group(group).shape();
      double latency = model.latencyUs(graph.kindOf(node), shape);
      stream += model.collectiveUs(graph.kindOf(node), shape, graph.fullBytes(node));
      double us = flat ? 0 : packUs(problem, task, model) + unpackUs(problem, task, model);
      if (keys.keyOf(task) != none && latency > 0)
        members.push_back({us / latency, latency});
    }
    if (stream == 0)
      continue;
    std::sort(members.begin(), members.end());
    double left = std::max(room, 0.0);
    for (auto [share, latency] : members) {
      double part = share == 0 ? 1 : std::clamp(left / (share * latency), 0.0, 1.0);
      stream -= part * latency;
      left -= part * share * latency;
    }
    least = std::max(least, before + network * stream + behind);
  }
  return least;
}

bool Comparison::reachesGoals() const {
  if (!error.empty() || overDefensive > 1 + goalRounding)
    return false;
  for (size_t i = 0; i != overOwn.size(); ++i)
    if (overOwn[i] > goals[i] * (1 + goalRounding))
      return false;
  return true;
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
  std::vector<double> defensiveUs(std::size(comparedNetworks),
                                  std::numeric_limits<double>::infinity());
  for (bool bucket : {false, true}) {
    other.bucket = bucket;
    OptimizeResult defensive = optimize(graph, model, other);
    if (!defensive.error.empty())
      continue; // the program's own order takes too much
    Replay replay(graph, defensive.plan, model, options.flat);
    for (size_t i = 0; i != scenarios.size(); ++i) {
      double us = replay.stepUs(scenarios[i]);
      result.overDefensive = std::max(result.overDefensive, steps[i] / us);
      if (i < defensiveUs.size())
        defensiveUs[i] = std::min(defensiveUs[i], us);
    }
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
    double leastUs = leastStepUs(graph, model, comparedNetworks[i], nominalUs, options.flat);
    result.least.push_back(leastUs / ownUs);
    double mostUs = std::min(goals[i] * ownUs, defensiveUs[i]) * (1 + goalRounding);
    result.leastOverGoal = std::max(result.leastOverGoal, leastUs / mostUs);
  }
  result.nominalOverBound =
      ours.after.stepUs / std::max(ours.bounds.lowerBoundNoLatencyUs, ours.bounds.criticalPathUs);
  return result;
}
