// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plans that searchRobust chooses among, what each takes in every scenario, and changes of the
// best of them.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTCANDIDATES_H
#define SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTCANDIDATES_H

#include "passes/collectives/core/Loosen.h"
#include "passes/collectives/core/Refine.h"
#include "passes/collectives/core/Replay.h"
#include "passes/collectives/core/ScheduleSearch.h"

#include <limits>
#include <set>

namespace shardc::collectives {

/// What is spent on programs of up to so many nodes: the larger they are, the longer a candidate
/// takes, and the less there is to gain from one more.
struct RobustEffort {
  size_t nodes, networks, kept;
  /// In how many plans more is merged.
  size_t merged;
  bool byNeed;
  /// In how many plans small changes are tried.
  size_t refined;
  /// Whether changes are tried that lead through worse plans.
  bool annealed = false;
  /// How many steps are scheduled from one order for nominal times, and for each other network.
  size_t nominalWork = 100000, networkWork = 60000;

  static const RobustEffort &of(const Graph &graph);
};

class RobustCandidates {
public:
  RobustCandidates(const Graph &graph, const cost::CostModel &model, const SearchOptions &options,
                   double robust);

  /// From now on a nominal step may be longer than this by what `robust` says, and no longer than
  /// `mostUs`.
  void boundNominal(double us, double mostUs);

  /// A schedule of the search, as it is and with more slack.
  void add(const Problem &problem, const ScheduleResult &result);
  /// No other plan should be longer than it, wherever. It takes at most `peakBytes`.
  void addDefensive(Decision decision, uint64_t peakBytes);

  /// Merges more in the best so far, for each of these times of packing. Returns how many plans
  /// that gave.
  unsigned mergeInBest(const Problem &problem, uint64_t limit, std::span<const double> packingUs);

  /// Notes the schedule with the shortest nominal step of those that were made for at most so many
  /// bytes.
  void noteFor(uint64_t bytes, const Problem &problem, const ScheduleResult &result);
  /// Tries small changes in the schedule that was noted, which leave it within `bytes`. It is the
  /// same under every limit from there on, and so is what becomes of it. Returns its nominal step;
  /// infinity if there is none.
  double refineNoted(const Problem &problem, uint64_t bytes);

  /// Tries small changes in the best so far. Returns how many plans that gave.
  unsigned refineBest(const Problem &problem, uint64_t limit);

  /// Where the best so far is longer than a defensive plan, or its regret is large, tries changes
  /// that lead through worse plans. Returns how many plans that gave.
  unsigned annealBest(const Problem &problem, uint64_t limit);

  /// Nothing if none takes at most `limit` bytes.
  std::optional<Decision> choose(uint64_t limit);

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

  /// `peakBytes` is the most that it may take; `make` gives the decision if it is kept.
  void add(const std::vector<double> &steps, uint64_t peakBytes,
           const std::function<Decision()> &make);
  std::vector<double> stepsOf(const Plan &plan) const;
  RefineOptions refineOptions(uint64_t limit) const;
  /// Tries small changes in `base`, and adds what they lead to, as it is and with more slack.
  unsigned refineAndAdd(const Problem &problem, const Decision &base, const RefineOptions &refine);
  void note(std::span<const double> steps);
  /// Of those that take at most `limit` bytes.
  std::vector<Decision> best(size_t count, uint64_t limit) const;
  bool mayBeChosen(std::span<const double> steps) const {
    return steps[0] <= (1 + stepRounding) * mostNominalUs;
  }
  /// By what part the plan is longer than a defensive one, and its regrets are too large.
  double excessOf(std::span<const double> steps) const;
  double scoreOf(std::span<const double> steps) const;
  /// Drops the worst by what is known so far; the others keep their order.
  void prune();

  const Graph &graph;
  const cost::CostModel &model;
  const SearchOptions &options;
  const double robust;
  const RobustEffort &effort;
  /// Of the shortest so far, until it is bound.
  double mostNominalUs = std::numeric_limits<double>::infinity();
  bool isBound = false;
  /// Small changes make no nominal step shorter than this, so that what they happen to gain under
  /// one memory limit and what is given away under a higher one are together 1 % at most.
  double leastRefinedUs = 0;
  double leastInProgramUs = std::numeric_limits<double>::infinity();
  std::optional<Decision> shortestInProgram;
  const std::vector<Scenario> scenarios, draws;
  std::vector<double> shortest; // by scenario, of all candidates
  // The same of the defensive ones; empty without any. Also by draw.
  std::vector<double> defensive, defensiveInDraws;
  std::vector<Candidate> candidates;
  /// Schedules without slack: their steps, by scenario, and what memory they may take with it.
  std::set<std::pair<std::vector<double>, uint64_t>> seen;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTCANDIDATES_H
