// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/ProgramTrials.h"

#include <algorithm>

using namespace shardc;
using namespace shardc::collectives;

/// Whether it says the same of a program and of its variants.
static bool isForAllVariants(const Scenario &scenario) {
  return scenario.group == none && scenario.jitter == 0;
}

ProgramTrials::ProgramTrials(const Graph &graph, const cost::CostModel &model,
                             const OptimizeOptions &options, double leastGain)
    : graph(graph), model(model), options(options), leastGain(leastGain),
      exposed(graph.numNodes()) {}

/// Notes the steps too.
OptimizeResult ProgramTrials::schedule(const Graph &of) {
  ++scheduled;
  OptimizeResult result = optimize(of, model, options);
  std::vector<double> &us = steps.emplace_back();
  for (size_t i = 0; i != result.stepsUs.size(); ++i)
    if (isForAllVariants(result.scenarios[i]))
      us.push_back(result.stepsUs[i]);
  return result;
}

bool ProgramTrials::begin() {
  OptimizeResult result = schedule(graph);
  if (!result.error.empty()) {
    steps.clear();
    return false;
  }
  options.memoryLimit = result.memoryLimit;
  for (const AloneRecord &alone : result.alone)
    exposed[alone.node] = alone.exposedAfterUs;
  for (const BucketRecord &bucket : result.buckets)
    for (NodeId member : bucket.members)
      exposed[member] = bucket.exposedAfterUs;
  return true;
}

void ProgramTrials::add(const Graph &variant) { schedule(variant); }

std::optional<size_t> ProgramTrials::best() const {
  if (steps.empty())
    return std::nullopt;
  std::vector<double> shortest = steps.front();
  for (const std::vector<double> &us : steps)
    for (size_t i = 0; i != us.size(); ++i)
      shortest[i] = std::min(shortest[i], us[i]);
  auto scoreOf = [&](const std::vector<double> &us) {
    std::vector<double> regrets;
    for (size_t i = 0; i != us.size(); ++i)
      regrets.push_back(regretOf(us[i], shortest[i]));
    return robustScore(regrets, options.robust);
  };
  double mostNominalUs = (1 + options.robust * largestNominalCost) * shortest.front();
  // With nominal times alone: its part of the step.
  double least = (1 + scoreOf(steps.front())) * (1 - leastGain) - 1;
  std::optional<size_t> best;
  for (size_t i = 1; i != steps.size(); ++i) {
    if (steps[i].empty() || steps[i].front() > mostNominalUs)
      continue;
    if (double score = scoreOf(steps[i]); score < least) {
      least = score;
      best = i - 1;
    }
  }
  return best;
}

double ProgramTrials::stepAfterUs() const {
  if (std::optional<size_t> variant = best())
    return steps[*variant + 1].front();
  return stepBeforeUs();
}
