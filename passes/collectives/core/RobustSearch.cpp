// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/RobustSearch.h"

#include "passes/collectives/core/Defensive.h"
#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/MergeMore.h"
#include "passes/collectives/core/Refine.h"
#include "passes/collectives/core/Simulate.h"
#include "passes/cost/core/ScaledModel.h"
#include "support/JsonText.h"

#include <cmath>
#include <limits>
#include <ranges>
#include <set>

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

/// Networks that plans are made for beside the nominal one: by how much they are slower.
constexpr double networks[] = {2, 1.4};

/// What is spent on programs of up to so many nodes: the larger they are, the longer a candidate
/// takes, and the less there is to gain from one more.
struct Effort {
  size_t nodes, networks, kept;
  /// In how many plans more is merged.
  size_t merged;
  bool byNeed;
  /// In how many plans small changes are tried.
  size_t refined;
  /// How many steps are scheduled from one order for nominal times, and for each other network.
  size_t nominalWork = 100000, networkWork = 60000;
};
constexpr Effort efforts[] = {{6500, 2, 32, 4, true, 1},
                              {12000, 2, 32, 4, false, 1, 70000, 45000},
                              {100000, 1, 8, 1, true, 0},
                              {SIZE_MAX, 0, 2, 0, false, 0}};

const Effort &effortFor(const Graph &graph) {
  const Effort *effort = efforts;
  while (effort->nodes < graph.numNodes())
    ++effort;
  return *effort;
}

/// How many changes of a plan are tried for each of its nodes, and in a row without success; and
/// how many events are replayed for them, which is what takes time in large programs.
constexpr size_t changesPerNode = 32, failuresPerNode = 8, mostReplayed = 1250000;

/// In how many steps of plans more is merged. Together with what is scheduled and replayed this is
/// what bounds the time: programs of a few thousand nodes have less and less tried.
constexpr size_t mergeWork = 12000;

/// How long a bucket may hold up its first member for the sake of latency that it saves later.
constexpr double patiences[] = {0.5, 3};

/// A regret that is larger counts as if the plan were longer than one that needs no times: on
/// networks as fast as they should be, and for each time that they take longer.
double largestRegret(const Scenario &scenario) { return 0.015 + 0.055 * (scenario.network - 1); }

class Candidates {
public:
  Candidates(const Graph &graph, const cost::CostModel &model, const SearchOptions &options,
             double robust)
      : graph(graph), model(model), options(options), robust(robust),
        scenarios(standardScenarios(graph, model)),
        shortest(scenarios.size(), std::numeric_limits<double>::infinity()) {}

  const Effort &getEffort() const { return effort; }

  /// From now on a nominal step may be longer than this by what `robust` says, and no longer than
  /// `mostUs`.
  void boundNominal(double us, double mostUs) {
    mostNominalUs = std::min((1 + robust * largestNominalCost) * us, mostUs);
    leastRefinedUs = (1 + robust * largestNominalCost) / (1 + largestNominalCost) * us;
    isBound = true;
  }

  /// A schedule of the search, as it is and with more slack.
  void add(const Problem &problem, const ScheduleResult &result) {
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
      std::vector<double> steps = Replay(graph, plan, model, options.flat).stepsUs(scenarios);
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

  /// No other plan should be longer than it, wherever.
  void addDefensive(Decision decision, uint64_t peakBytes) {
    Replay replay(graph, decision.plan, model, options.flat);
    std::vector<double> steps = replay.stepsUs(scenarios);
    if (defensive.empty())
      defensive = steps;
    for (size_t i = 0; i != steps.size(); ++i)
      defensive[i] = std::min(defensive[i], steps[i]);
    add(steps, peakBytes, [&] { return std::move(decision); });
  }

  /// `peakBytes` is the most that it may take.
  template <typename Make> void add(const Replay &replay, uint64_t peakBytes, Make make) {
    add(replay.stepsUs(scenarios), peakBytes, std::move(make));
  }
  template <typename Make>
  void add(const std::vector<double> &steps, uint64_t peakBytes, Make make) {
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

  /// Merges more in the best so far, for each of these times of packing. Returns how many plans
  /// that gave.
  unsigned mergeInBest(const Problem &problem, uint64_t limit, std::span<const double> packingUs) {
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
          Replay replay(graph, merged->plan, model, options.flat);
          add(replay, peak, [&] { return std::move(*merged); });
        }
    return made;
  }

  /// Notes the schedule with the shortest nominal step of those that were made for at most so many
  /// bytes.
  void noteFor(uint64_t bytes, const Problem &problem, const ScheduleResult &result) {
    if (effort.refined == 0 || result.level > bytes || result.peakBytes > bytes ||
        result.stepUs >= leastInProgramUs)
      return;
    leastInProgramUs = result.stepUs;
    shortestInProgram = toDecision(problem, result);
  }

  /// Tries small changes in the schedule that was noted, which leave it within `bytes`. It is the
  /// same under every limit from there on, and so is what becomes of it. Returns its nominal step;
  /// infinity if there is none.
  double refineNoted(const Problem &problem, uint64_t bytes) {
    if (!shortestInProgram)
      return std::numeric_limits<double>::infinity();
    std::vector<double> before =
        Replay(graph, shortestInProgram->plan, model, options.flat).stepsUs(scenarios);
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
    Replay replay(graph, plan->plan, model, options.flat);
    double us = replay.stepUs({});
    uint64_t peak = simulate(graph, plan->plan, model, {options.flat}).peakHoldBytes;
    add(replay, peak, [&] { return std::move(*plan); });
    return us;
  }

  /// Tries small changes in the best so far. Returns how many plans that gave.
  unsigned refineBest(const Problem &problem, uint64_t limit) {
    BucketKeys keys(problem, options.buckets);
    unsigned made = 0;
    for (const Decision &base : best(effort.refined, limit)) {
      double leastUs =
          std::min(leastRefinedUs, Replay(graph, base.plan, model, options.flat).stepUs({}));
      Badness badness = [&](std::span<const double> steps) {
        return mayBeChosen(steps) && steps[0] >= (1 - stepRounding) * leastUs
                   ? scoreOf(steps)
                   : std::numeric_limits<double>::infinity();
      };
      std::optional<Decision> plan =
          refine(problem, keys, model, base, scenarios, badness, refineOptions(limit));
      if (!plan)
        continue;
      for (bool loose : {false, true}) {
        Decision next = *plan;
        if (loose)
          next.plan = loosen(problem, plan->plan, {limit, options.flat, StartOrder::Kept});
        uint64_t peak = simulate(graph, next.plan, model, {options.flat}).peakHoldBytes;
        if (peak > limit)
          continue;
        ++made;
        Replay replay(graph, next.plan, model, options.flat);
        add(replay, peak, [&] { return std::move(next); });
      }
    }
    return made;
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
  RefineOptions refineOptions(uint64_t limit) const {
    return {options.buckets,
            options.bucket,
            options.flat,
            limit,
            changesPerNode * graph.numNodes(),
            failuresPerNode * graph.numNodes(),
            mostReplayed};
  }

  struct Candidate {
    Decision decision;
    /// By scenario.
    std::vector<double> steps;
    uint64_t peakBytes;
  };

  void note(std::span<const double> steps) {
    for (size_t i = 0; i != steps.size(); ++i)
      shortest[i] = std::min(shortest[i], steps[i]);
  }

  /// Of those that take at most `limit` bytes.
  std::vector<Decision> best(size_t count, uint64_t limit) const {
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

  bool mayBeChosen(std::span<const double> steps) const {
    return steps[0] <= (1 + stepRounding) * mostNominalUs;
  }

  double scoreOf(std::span<const double> steps) const {
    std::array<double, mostScenarios> regrets;
    double longer = 0, excess = 0;
    for (size_t i = 0; i != steps.size(); ++i) {
      regrets[i] = regretOf(steps[i], shortest[i]);
      if (i != 0)
        excess += std::max(0.0, regrets[i] - largestRegret(scenarios[i]));
    }
    for (size_t i = 0; i != defensive.size(); ++i)
      longer = std::max(longer, steps[i] / defensive[i] - 1 - stepRounding);
    return failure * (longer + excess) +
           robustScore(std::span(regrets).first(steps.size()), robust);
  }

  /// Drops the worst by what is known so far; the others keep their order.
  void prune() {
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

  const Graph &graph;
  const cost::CostModel &model;
  const SearchOptions &options;
  double robust;
  /// Of the shortest so far, until it is bound.
  double mostNominalUs = std::numeric_limits<double>::infinity();
  bool isBound = false;
  /// Small changes make no nominal step shorter than this, so that what they happen to gain under
  /// one memory limit and what is given away under a higher one are together 1 % at most.
  double leastRefinedUs = 0;
  double leastInProgramUs = std::numeric_limits<double>::infinity();
  std::optional<Decision> shortestInProgram;
  const Effort &effort = effortFor(graph);
  std::vector<Scenario> scenarios;
  std::vector<double> shortest;  // by scenario, of all candidates
  std::vector<double> defensive; // the same of the defensive ones; empty without any
  std::vector<Candidate> candidates;
  /// Schedules without slack: their steps, by scenario, and what memory they may take with it.
  std::set<std::pair<std::vector<double>, uint64_t>> seen;
};

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
  options.work = effortFor(graph).nominalWork;
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
  Candidates candidates(graph, model, options, robust);
  Figures asItIs = simulate(graph, model);
  bool fits = asItIs.peakHoldBytes <= options.memoryLimit;
  SearchOptions searched = options;
  searched.visit = [&](const Problem &of, const ScheduleResult &result) {
    if (fits)
      candidates.noteFor(asItIs.peakHoldBytes, of, result);
    candidates.add(of, result);
  };
  searched.work = candidates.getEffort().nominalWork;
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
  searched.work = candidates.getEffort().networkWork;
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
  for (double network : std::span(networks).first(candidates.getEffort().networks))
    result.candidates +=
        searchSchedules(graph, cost::ScaledModel(model, network), searched).candidates;
  if (options.bucket)
    result.candidates += candidates.mergeInBest(problem, limit, packing.ofMergesUs());
  result.candidates += candidates.refineBest(problem, limit);
  if (std::optional<Decision> chosen = candidates.choose(limit))
    result.best = std::move(chosen);
  return result;
}
