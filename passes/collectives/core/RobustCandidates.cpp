// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/RobustCandidates.h"

#include "passes/collectives/core/MergeMore.h"
#include "passes/collectives/core/RobustSearch.h"
#include "passes/collectives/core/Simulate.h"

#include <ranges>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// Scores that differ by less are equal.
constexpr double sameScore = 1e-4;

/// How many times as long as the shortest a nominal step may be that more slack could make the
/// shortest.
constexpr double mostGain = 1.03;

/// What it counts, beside regrets, that a plan is longer than one that needs no times.
constexpr double failure = 50;

/// The last entry is for all larger programs.
constexpr RobustEffort robustEfforts[] = {{1500, 2, 32, 4, true, 1, true},
                                          {6500, 2, 32, 4, true, 1},
                                          {12000, 2, 32, 4, false, 1, false, 70000, 45000},
                                          {100000, 1, 8, 1, true, 0},
                                          {SIZE_MAX, 0, 2, 0, false, 0}};

/// How many changes of a plan are tried for each of its nodes, and in a row without success; and
/// how many events are replayed for them, which is what takes time in large programs.
constexpr size_t changesPerNode = 32, failuresPerNode = 8, mostReplayed = 1250000;

/// How many events are replayed for plans that are found through worse ones, and by how much a
/// score may become worse at first, once after the other: 0.05 % of a step beyond a goal count
/// 0.025.
constexpr size_t annealEvents = 6000000;
constexpr double heats[] = {0.02, 0.005};

/// In how many steps of plans more is merged. Together with what is scheduled and replayed this is
/// what bounds the time: programs of a few thousand nodes have less and less tried.
constexpr size_t mergeWork = 12000;

/// How long a bucket may hold up its first member for the sake of latency that it saves later.
constexpr double patiences[] = {0.5, 3};

/// A regret that is larger counts as if the plan were longer than one that needs no times: on
/// networks as fast as they should be, and for each time that they take longer.
double largestRegret(const Scenario &scenario) { return 0.015 + 0.055 * (scenario.network - 1); }

/// Draws of kernels that are up to a fifth off, beside those of the standard scenarios: small
/// changes fit a plan to the draws that they are judged by. Plans are chosen by these as well;
/// annealing takes as many of them as there is room for beside the standard scenarios, which is
/// none where there are three groups.
std::vector<Scenario> drawsOfKernels() {
  std::vector<Scenario> draws;
  for (uint32_t seed = 11; seed != 16; ++seed)
    draws.push_back({"", 1, none, 0.2, seed});
  return draws;
}

/// The shorter step of each scenario; `least` may be empty.
void lower(std::vector<double> &least, const std::vector<double> &steps) {
  if (least.empty())
    least = steps;
  for (size_t i = 0; i != steps.size(); ++i)
    least[i] = std::min(least[i], steps[i]);
}

/// By what part steps are longer than others, where they are most; `others` may be empty.
double longestOver(std::span<const double> steps, const std::vector<double> &others) {
  double longer = 0;
  for (size_t i = 0; i != std::min(steps.size(), others.size()); ++i)
    longer = std::max(longer, steps[i] / others[i] - 1 - stepRounding);
  return longer;
}

} // namespace

const RobustEffort &RobustEffort::of(const Graph &graph) {
  const RobustEffort *effort = robustEfforts;
  while (effort->nodes < graph.numNodes())
    ++effort;
  return *effort;
}

RobustCandidates::RobustCandidates(const Graph &graph, const cost::CostModel &model,
                                   const SearchOptions &options, double robust)
    : graph(graph), model(model), options(options), robust(robust), effort(RobustEffort::of(graph)),
      scenarios(standardScenarios(graph, model)), draws(drawsOfKernels()),
      shortest(scenarios.size(), std::numeric_limits<double>::infinity()) {}

std::vector<double> RobustCandidates::stepsOf(const Plan &plan) const {
  return Replay(graph, plan, model, options.flat).stepsUs(scenarios);
}

void RobustCandidates::boundNominal(double us, double mostUs) {
  mostNominalUs = std::min((1 + robust * largestNominalCost) * us, mostUs);
  leastRefinedUs = (1 + robust * largestNominalCost) / (1 + largestNominalCost) * us;
  isBound = true;
}

void RobustCandidates::add(const Problem &problem, const ScheduleResult &result) {
  uint64_t limit = limitFor(result.peakBytes);
  Replay asItIs(graph, result.plan, model, options.flat);
  std::pair known(asItIs.stepsUs(scenarios), limit);
  note(known.first);
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
  auto addLoose = [&](StartOrder order, bool unpackInOrder) {
    Plan plan = loosen(problem, result.plan, {limit, options.flat, order, unpackInOrder});
    std::vector<double> steps = stepsOf(plan);
    add(steps, limit, decision(std::move(plan)));
    return steps;
  };
  std::vector<double> loose = addLoose(StartOrder::Kept, false);
  if (std::ranges::any_of(std::views::iota(size_t(0), loose.size()),
                          [&](size_t i) { return loose[i] > (1 + sameScore) * known.first[i]; }))
    addLoose(StartOrder::Kept, true);
  if (effort.byNeed)
    addLoose(StartOrder::Need, false);
  add(known.first, result.peakBytes, decision(result.plan));
}

void RobustCandidates::addDefensive(Decision decision, uint64_t peakBytes) {
  std::vector<double> steps = stepsOf(decision.plan);
  lower(defensive, steps);
  lower(defensiveInDraws, Replay(graph, decision.plan, model, options.flat).stepsUs(draws));
  add(steps, peakBytes, [&] { return std::move(decision); });
}

void RobustCandidates::add(const std::vector<double> &steps, uint64_t peakBytes,
                           const std::function<Decision()> &make) {
  note(steps);
  if (!isBound)
    mostNominalUs = (1 + robust * largestNominalCost) * shortest[0];
  if (!mayBeChosen(steps) || std::ranges::any_of(candidates, [&](const Candidate &other) {
        return other.steps == steps && other.peakBytes <= peakBytes;
      }))
    return;
  candidates.push_back({make(), steps, peakBytes});
  if (candidates.size() > 2 * effort.kept)
    prune();
}

unsigned RobustCandidates::mergeInBest(const Problem &problem, uint64_t limit,
                                       std::span<const double> packingUs) {
  BucketKeys keys(problem, options.buckets);
  unsigned made = 0;
  size_t count = std::min(effort.merged,
                          std::max<size_t>(1, mergeWork / std::max<size_t>(problem.numSteps, 1)));
  for (const Decision &base : best(count, limit))
    for (double us : packingUs)
      for (double patience : patiences) {
        MergeOptions merge{options.buckets, options.flat, us, patience};
        std::optional<Decision> merged = mergeMore(problem, keys, model, base, merge);
        if (!merged)
          continue;
        merged->plan = loosen(problem, merged->plan, {limit, options.flat, StartOrder::Kept});
        uint64_t peak = simulate(graph, merged->plan, model, {options.flat}).peakHoldBytes;
        if (peak > limit)
          continue;
        ++made;
        add(stepsOf(merged->plan), peak, [&] { return std::move(*merged); });
      }
  return made;
}

void RobustCandidates::noteFor(uint64_t bytes, const Problem &problem,
                               const ScheduleResult &result) {
  if (effort.refined == 0 || result.level > bytes || result.peakBytes > bytes ||
      result.stepUs >= leastInProgramUs)
    return;
  leastInProgramUs = result.stepUs;
  shortestInProgram = toDecision(problem, result);
}

double RobustCandidates::refineNoted(const Problem &problem, uint64_t bytes) {
  if (!shortestInProgram)
    return std::numeric_limits<double>::infinity();
  std::vector<double> before = stepsOf(shortestInProgram->plan);
  Badness badness = [&](std::span<const double> steps) {
    double sum = 0;
    for (size_t i = 0; i != steps.size(); ++i)
      sum += before[i] == 0 ? 1 : steps[i] / before[i];
    return sum / double(steps.size()) + (before[0] == 0 ? 1 : steps[0] / before[0]);
  };
  BucketKeys keys(problem, options.buckets);
  std::optional<Decision> plan =
      refine(problem, keys, model, *shortestInProgram, scenarios, badness, refineOptions(bytes));
  if (!plan)
    return std::numeric_limits<double>::infinity();
  std::vector<double> steps = stepsOf(plan->plan);
  uint64_t peak = simulate(graph, plan->plan, model, {options.flat}).peakHoldBytes;
  add(steps, peak, [&] { return std::move(*plan); });
  return steps[0];
}

unsigned RobustCandidates::refineAndAdd(const Problem &problem, const Decision &base,
                                        const RefineOptions &refineOptions) {
  double leastUs =
      std::min(leastRefinedUs, Replay(graph, base.plan, model, options.flat).stepUs({}));
  if (!defensive.empty())
    leastUs = std::min(leastUs, defensive[0]);
  std::vector<Scenario> judged = scenarios;
  if (refineOptions.heat > 0)
    judged.insert(judged.end(), draws.begin(),
                  draws.begin() + std::min(draws.size(), mostScenarios - scenarios.size()));
  Badness badness = [&](std::span<const double> steps) {
    if (!mayBeChosen(steps) || steps[0] < (1 - stepRounding) * leastUs)
      return std::numeric_limits<double>::infinity();
    return scoreOf(steps.first(scenarios.size())) +
           failure * longestOver(steps.subspan(scenarios.size()), defensiveInDraws);
  };
  BucketKeys keys(problem, options.buckets);
  std::optional<Decision> plan = refine(problem, keys, model, base, judged, badness, refineOptions);
  if (!plan)
    return 0;
  unsigned made = 0;
  for (bool loose : {false, true}) {
    Decision next = *plan;
    if (loose)
      next.plan =
          loosen(problem, plan->plan, {refineOptions.memoryLimit, options.flat, StartOrder::Kept});
    uint64_t peak = simulate(graph, next.plan, model, {options.flat}).peakHoldBytes;
    if (peak > refineOptions.memoryLimit)
      continue;
    ++made;
    add(stepsOf(next.plan), peak, [&] { return std::move(next); });
  }
  return made;
}

unsigned RobustCandidates::refineBest(const Problem &problem, uint64_t limit) {
  unsigned made = 0;
  for (const Decision &base : best(effort.refined, limit))
    made += refineAndAdd(problem, base, refineOptions(limit));
  return made;
}

unsigned RobustCandidates::annealBest(const Problem &problem, uint64_t limit) {
  unsigned made = 0;
  if (!effort.annealed)
    return made;
  for (double heat : heats) {
    std::vector<Decision> bases = best(1, limit);
    if (bases.empty() || excessOf(stepsOf(bases.front().plan)) == 0)
      break;
    RefineOptions anneal = refineOptions(limit);
    anneal.tries = anneal.failures = annealEvents; // most changes replay dozens of events
    anneal.events = annealEvents;
    anneal.heat = heat;
    made += refineAndAdd(problem, bases.front(), anneal);
  }
  return made;
}

std::optional<Decision> RobustCandidates::choose(uint64_t limit) {
  std::erase_if(candidates,
                [&](const Candidate &c) { return c.peakBytes > limit || !mayBeChosen(c.steps); });
  std::vector<double> scores;
  for (const Candidate &c : candidates) {
    Replay replay(graph, c.decision.plan, model, options.flat);
    scores.push_back(scoreOf(c.steps) +
                     failure * longestOver(replay.stepsUs(draws), defensiveInDraws));
  }
  while (!candidates.empty()) {
    double best = *std::min_element(scores.begin(), scores.end());
    size_t first = 0;
    while (scores[first] > best + sameScore)
      ++first;
    Candidate &chosen = candidates[first];
    if (simulate(graph, chosen.decision.plan, model, {options.flat}).peakHoldBytes <= limit)
      return std::move(chosen.decision);
    candidates.erase(candidates.begin() + first);
    scores.erase(scores.begin() + first);
  }
  return std::nullopt;
}

RefineOptions RobustCandidates::refineOptions(uint64_t limit) const {
  return {options.buckets,
          options.bucket,
          options.flat,
          limit,
          changesPerNode * graph.numNodes(),
          failuresPerNode * graph.numNodes(),
          mostReplayed};
}

void RobustCandidates::note(std::span<const double> steps) {
  for (size_t i = 0; i != steps.size(); ++i)
    shortest[i] = std::min(shortest[i], steps[i]);
}

std::vector<Decision> RobustCandidates::best(size_t count, uint64_t limit) const {
  std::vector<std::pair<double, size_t>> ranked;
  for (size_t i = 0; i != candidates.size(); ++i)
    if (candidates[i].peakBytes <= limit && mayBeChosen(candidates[i].steps))
      ranked.push_back({scoreOf(candidates[i].steps), i});
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), count));
  std::vector<Decision> decisions;
  for (auto [score, index] : ranked)
    decisions.push_back(candidates[index].decision);
  return decisions;
}

double RobustCandidates::excessOf(std::span<const double> steps) const {
  double excess = 0;
  for (size_t i = 1; i != steps.size(); ++i)
    excess += std::max(0.0, regretOf(steps[i], shortest[i]) - largestRegret(scenarios[i]));
  return longestOver(steps, defensive) + excess;
}

double RobustCandidates::scoreOf(std::span<const double> steps) const {
  std::array<double, mostScenarios> regrets;
  for (size_t i = 0; i != steps.size(); ++i)
    regrets[i] = regretOf(steps[i], shortest[i]);
  return failure * excessOf(steps) + robustScore(std::span(regrets).first(steps.size()), robust);
}

void RobustCandidates::prune() {
  std::erase_if(candidates, [&](const Candidate &c) { return !mayBeChosen(c.steps); });
  if (candidates.size() <= effort.kept)
    return;
  std::vector<std::pair<double, size_t>> ranked;
  for (const Candidate &c : candidates)
    ranked.push_back({scoreOf(c.steps), ranked.size()});
  std::vector<bool> keep(candidates.size(), false);
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i != effort.kept; ++i)
    keep[ranked[i].second] = true;
  size_t index = 0;
  std::erase_if(candidates, [&](const Candidate &) { return !keep[index++]; });
}
