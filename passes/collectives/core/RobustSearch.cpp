// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/RobustSearch.h"

#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/ScaledModel.h"
#include "support/JsonText.h"

#include <cmath>
#include <limits>
#include <set>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Steps that differ by less are equal: the same kernels, added in another order.
constexpr double rounding = 1e-9;

/// Scores that differ by less are equal.
constexpr double sameScore = 1e-4;

/// How many times as long as the shortest a nominal step may be that more slack could make the
/// shortest.
constexpr double mostGain = 1.03;

/// Networks that plans are made for beside the nominal one: by how much they are slower.
constexpr double networks[] = {2, 1.4};

/// What is spent on programs of up to so many nodes: the larger they are, the longer a candidate
/// takes, and the less there is to gain from one more.
struct Effort {
  size_t nodes, networks, kept;
  bool byNeed;
};
constexpr Effort efforts[] = {{12000, 2, 32, true}, {100000, 1, 8, true}, {SIZE_MAX, 0, 2, false}};

class Candidates {
public:
  Candidates(const Graph &graph, const cost::CostModel &model, const SearchOptions &options,
             double robust)
      : graph(graph), model(model), options(options), robust(robust),
        scenarios(standardScenarios(graph, model)),
        shortest(scenarios.size(), std::numeric_limits<double>::infinity()) {
    while (effort->nodes < graph.numNodes())
      ++effort;
  }

  const Effort &getEffort() const { return *effort; }

  /// A schedule of the search, as it is and with more slack.
  void add(const Problem &problem, const ScheduleResult &result) {
    uint64_t limit = limitFor(result.peakBytes);
    Replay asItIs(graph, result.plan, model, options.flat);
    std::pair known(asItIs.stepsUs(scenarios), limit);
    // Slack makes a plan shorter, but not by much on nominal times.
    if (known.first[0] > mostGain * shortest[0] || !seen.insert(known).second)
      return;
    auto decision = [&](Plan plan) {
      return [&problem, &result, plan = std::move(plan)]() mutable {
        Decision made = toDecision(problem, {.plan = std::move(plan),
                                             .closed = result.closed,
                                             .capBytes = result.capBytes,
                                             .alone = result.alone});
        return made;
      };
    };
    auto addLoose = [&](StartOrder order) {
      Plan plan = loosen(problem, result.plan, {limit, options.flat, order});
      Replay replay(graph, plan, model, options.flat);
      add(replay, limit, decision(std::move(plan)));
    };
    addLoose(StartOrder::Kept);
    if (effort->byNeed)
      addLoose(StartOrder::Need);
    add(asItIs, result.peakBytes, decision(result.plan));
  }

  /// `peakBytes` is the most that it may take.
  template <typename Make> void add(const Replay &replay, uint64_t peakBytes, Make make) {
    std::vector<double> steps = replay.stepsUs(scenarios);
    for (size_t i = 0; i != steps.size(); ++i)
      shortest[i] = std::min(shortest[i], steps[i]);
    if (!mayBeChosen(steps) || std::ranges::any_of(candidates, [&](const Candidate &other) {
          return other.steps == steps && other.peakBytes <= peakBytes;
        }))
      return;
    candidates.push_back({make(), std::move(steps), peakBytes});
    if (candidates.size() > 2 * effort->kept)
      prune();
  }

  /// Nothing if none takes at most `limit` bytes.
  std::optional<Decision> choose(uint64_t limit) {
    std::erase_if(candidates,
                  [&](const Candidate &c) { return c.peakBytes > limit || !mayBeChosen(c.steps); });
    while (!candidates.empty()) {
      std::vector<double> scores;
      for (const Candidate &c : candidates)
        scores.push_back(scoreOf(c.steps));
      double best = *std::min_element(scores.begin(), scores.end());
      size_t first = 0;
      while (scores[first] > best + sameScore)
        ++first;
      Candidate &chosen = candidates[first];
      if (simulate(graph, chosen.decision.plan, model, {options.flat}).peakHoldBytes <= limit)
        return std::move(chosen.decision);
      candidates.erase(candidates.begin() + first);
    }
    return std::nullopt;
  }

  /// What a plan may take that takes `peakBytes` without slack: no more memory than is free.
  uint64_t limitFor(uint64_t peakBytes) const {
    return std::min(options.memoryLimit, std::max(options.freeBytes, peakBytes));
  }

private:
  struct Candidate {
    Decision decision;
    /// By scenario.
    std::vector<double> steps;
    uint64_t peakBytes;
  };

  bool mayBeChosen(const std::vector<double> &steps) const {
    return steps[0] <= (1 + robust * largestNominalCost + rounding) * shortest[0];
  }

  double scoreOf(const std::vector<double> &steps) const {
    double worst = 0, sum = 0;
    for (size_t i = 0; i != steps.size(); ++i) {
      double regret = shortest[i] == 0 ? 0 : steps[i] / shortest[i] - 1;
      worst = std::max(worst, regret);
      sum += regret;
    }
    double nominal = shortest[0] == 0 ? 0 : steps[0] / shortest[0] - 1;
    return (1 - robust) * nominal + robust * (worst + sum / double(steps.size())) / 2;
  }

  /// Drops the worst by what is known so far; the others keep their order.
  void prune() {
    std::erase_if(candidates, [&](const Candidate &c) { return !mayBeChosen(c.steps); });
    if (candidates.size() <= effort->kept)
      return;
    std::vector<std::pair<double, size_t>> ranked;
    for (const Candidate &c : candidates)
      ranked.push_back({scoreOf(c.steps), ranked.size()});
    std::vector<bool> keep(candidates.size(), false);
    std::sort(ranked.begin(), ranked.end());
    for (size_t i = 0; i != effort->kept; ++i)
      keep[ranked[i].second] = true;
    size_t index = 0;
    std::erase_if(candidates, [&](const Candidate &) { return !keep[index++]; });
  }

  const Graph &graph;
  const cost::CostModel &model;
  const SearchOptions &options;
  double robust;
  const Effort *effort = efforts;
  std::vector<Scenario> scenarios;
  std::vector<double> shortest; // by scenario, of all candidates
  std::vector<Candidate> candidates;
  /// Schedules without slack: their steps, by scenario, and what memory they may take with it.
  std::set<std::pair<std::vector<double>, uint64_t>> seen;
};

} // namespace

std::string shardc::collectives::describeRobustness(double robust) {
  return jsonNumber(robust) + " is not from 0 (only the times of the cost model count) to 1";
}

/// The best for nominal times, with slack where that leaves the step as it is. (A shorter one would
/// be a gain, but not one that a higher limit is sure to have as well.)
static SearchResult searchNominal(const Graph &graph, const cost::CostModel &model,
                                  const SearchOptions &options) {
  SearchResult result = searchSchedules(graph, model, options);
  if (!result.best)
    return result;
  Plan &plan = result.best->plan;
  Figures figures = simulate(graph, plan, model, {options.flat});
  uint64_t limit =
      std::min(options.memoryLimit, std::max(options.freeBytes, figures.peakHoldBytes));
  Plan loose = loosen(Problem(graph), plan, {limit, options.flat, StartOrder::Kept});
  Figures of = simulate(graph, loose, model, {options.flat});
  if (std::abs(of.stepUs - figures.stepUs) <= rounding * figures.stepUs &&
      of.peakHoldBytes <= limit)
    plan = std::move(loose);
  return result;
}

SearchResult shardc::collectives::searchRobust(const Graph &graph, const cost::CostModel &model,
                                               const SearchOptions &options, double robust) {
  if (robust == 0)
    return searchNominal(graph, model, options);
  Candidates candidates(graph, model, options, robust);
  SearchOptions searched = options;
  searched.visit = [&](const Problem &problem, const ScheduleResult &result) {
    candidates.add(problem, result);
  };
  SearchResult result = searchSchedules(graph, model, searched);
  if (!result.best)
    return result;
  // The search takes more memory than is free only where that is worth it.
  uint64_t limit =
      candidates.limitFor(simulate(graph, result.best->plan, model, {options.flat}).peakHoldBytes);
  searched.memoryLimit = limit;
  searched.everyLevel = false;
  for (double network : std::span(networks).first(candidates.getEffort().networks))
    result.candidates +=
        searchSchedules(graph, cost::ScaledModel(model, network), searched).candidates;
  Problem problem(graph);
  for (bool bucket : {false, true}) {
    SearchOptions defensive = options;
    defensive.memoryLimit = limit;
    defensive.bucket = bucket;
    if (bucket && !options.bucket)
      continue;
    if (std::optional<Decision> schedule = defensiveSchedule(problem, model, defensive)) {
      ++result.candidates;
      Replay replay(graph, schedule->plan, model, options.flat);
      candidates.add(replay, limit, [&] { return std::move(*schedule); });
    }
  }
  if (std::optional<Decision> chosen = candidates.choose(limit))
    result.best = std::move(chosen);
  return result;
}
