// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/RobustSearch.h"

#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/RobustCandidates.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/ScaledModel.h"
#include "support/JsonText.h"

#include <cmath>
#include <limits>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Networks that plans are made for beside the nominal one: by how much they are slower.
constexpr double networks[] = {2, 1.4};

} // namespace

double shardc::collectives::robustScore(std::span<const double> regrets, double robust) {
  double worst = 0, sum = 0;
  for (double regret : regrets) {
    worst = std::max(worst, regret);
    sum += regret;
  }
  return (1 - robust) * regrets.front() + robust * (worst + sum / double(regrets.size())) / 2;
}

std::string shardc::collectives::describeRobustness(double robust) {
  // JSON has no name for these.
  std::string number = std::isnan(robust)   ? "nan"
                       : std::isinf(robust) ? (robust > 0 ? "inf" : "-inf")
                                            : jsonNumber(robust);
  return number + " is not from 0 (only the times of the cost model count) to 1";
}

/// The best for nominal times, with slack where that leaves the step as it is. (A shorter one would
/// be a gain, but not one that a higher limit is sure to have as well.)
static SearchResult searchNominal(const Graph &graph, const cost::CostModel &model,
                                  SearchOptions options) {
  options.work = RobustEffort::of(graph).nominalWork;
  SearchResult result = searchSchedules(graph, model, options);
  if (!result.best)
    return result;
  Plan &plan = result.best->plan;
  Figures figures = simulate(graph, plan, model, {options.flat});
  uint64_t limit =
      std::min(options.memoryLimit, std::max(options.freeBytes, figures.peakHoldBytes));
  Problem problem(graph);
  for (bool unpackInOrder : {false, true}) {
    Plan loose = loosen(problem, plan, {limit, options.flat, StartOrder::Kept, unpackInOrder});
    Figures of = simulate(graph, loose, model, {options.flat});
    if (std::abs(of.stepUs - figures.stepUs) <= stepRounding * figures.stepUs &&
        of.peakHoldBytes <= limit) {
      plan = std::move(loose);
      break;
    }
  }
  return result;
}

namespace {

/// How long packing may take: each merge saves a latency, which is worth more on a slower network,
/// but packing is time of the compute stream on every network.
struct Packing {
  Packing(const Graph &graph, const cost::CostModel &model, const Decision &shortest, bool flat,
          double robust) {
    Figures figures = simulate(graph, shortest.plan, model, {flat});
    double kernelsUs = 0;
    for (NodeId node = 0; node != graph.numNodes(); ++node)
      if (graph.isKernel(node))
        kernelsUs += graph.durationUs(node);
    takenUs = figures.computeUs - kernelsUs;
    mayCostUs = robust * largestNominalCost * figures.stepUs;
    stallsUs = figures.stepUs - figures.computeUs - double(figures.launches) * model.launchUs();
  }

  /// All that a plan packs.
  std::vector<double> ofPlansUs() const {
    return {takenUs + mayCostUs / 2, takenUs + mayCostUs, takenUs + mayCostUs + stallsUs};
  }
  /// What is packed in addition.
  std::vector<double> ofMergesUs() const {
    return {mayCostUs / 4, mayCostUs / 2, mayCostUs, mayCostUs + stallsUs};
  }

  double takenUs, mayCostUs, stallsUs;
};

} // namespace

SearchResult shardc::collectives::searchRobust(const Graph &graph, const cost::CostModel &model,
                                               const SearchOptions &options, double robust) {
  if (robust == 0)
    return searchNominal(graph, model, options);
  RobustCandidates candidates(graph, model, options, robust);
  const RobustEffort &effort = RobustEffort::of(graph);
  Figures asItIs = simulate(graph, model);
  bool fits = asItIs.peakHoldBytes <= options.memoryLimit;
  SearchOptions searched = options;
  searched.visit = [&](const Problem &of, const ScheduleResult &result) {
    if (fits)
      candidates.noteFor(asItIs.peakHoldBytes, of, result);
    candidates.add(of, result);
  };
  searched.work = effort.nominalWork;
  SearchResult result = searchSchedules(graph, model, searched);
  if (!result.best)
    return result;
  // The search takes more memory than is free only where that is worth it.
  Figures nominal = simulate(graph, result.best->plan, model, {options.flat});
  uint64_t limit = candidates.limitFor(nominal.peakHoldBytes);
  Problem problem(graph);
  searched.visit = [&](const Problem &of, const ScheduleResult &result) {
    candidates.add(of, result);
  };
  double refinedUs = candidates.refineNoted(problem, asItIs.peakHoldBytes);
  candidates.boundNominal(std::min(nominal.stepUs, refinedUs),
                          fits ? asItIs.stepUs : std::numeric_limits<double>::infinity());
  searched.memoryLimit = limit;
  Packing packing(graph, model, *result.best, options.flat, robust);
  if (options.bucket)
    searched.packingUs = packing.ofPlansUs();
  // A higher limit has all that a lower one has, as long as there is work for all levels.
  searched.everyLevel = true;
  searched.work = effort.networkWork;
  searched.limitFirst = true;
  for (bool bucket : {false, true}) {
    SearchOptions defensive = options;
    defensive.memoryLimit = limit;
    defensive.bucket = bucket;
    if (bucket && !options.bucket)
      continue;
    if (std::optional<Decision> schedule = defensiveSchedule(problem, model, defensive)) {
      ++result.candidates;
      candidates.addDefensive(std::move(*schedule), limit);
    }
  }
  for (double network : std::span(networks).first(effort.networks))
    result.candidates +=
        searchSchedules(graph, cost::ScaledModel(model, network), searched).candidates;
  if (options.bucket)
    result.candidates += candidates.mergeInBest(problem, limit, packing.ofMergesUs());
  result.candidates += candidates.refineBest(problem, limit);
  result.candidates += candidates.annealBest(problem, limit);
  if (std::optional<Decision> chosen = candidates.choose(limit))
    result.best = std::move(chosen);
  return result;
}
