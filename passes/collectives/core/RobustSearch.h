// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses a plan that is good over a range of times, not only for those of the cost model.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTSEARCH_H
#define SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTSEARCH_H

#include "passes/collectives/core/Replay.h"
#include "passes/collectives/core/ScheduleSearch.h"

namespace shardc::collectives {

/// By how much a plan may be longer on nominal times than the shortest, at `robust` = 1.
inline constexpr double largestNominalCost = 0.01;
/// Nominal times are an estimate themselves: half a percent is less than what they are off by.
inline constexpr double defaultRobust = 0.5;

/// Whether it is one, from 0 to 1, and what is wrong with it where it is not.
inline bool isRobustness(double robust) { return robust >= 0 && robust <= 1; }
std::string describeRobustness(double robust);

/// By what part a step is longer than the shortest.
inline double regretOf(double stepUs, double shortestUs) {
  return shortestUs == 0 ? 0 : stepUs / shortestUs - 1;
}
/// What plans are compared by, from their regrets by scenario, the nominal one first:
/// (1 - robust) nominal regret + robust (worst + mean regret) / 2.
double robustScore(std::span<const double> regrets, double robust);

/// searchSchedules, and then the choice among all that it tried and more:
/// - Each schedule that meets the limit is also a candidate with as much slack as the limit allows
///   (Loosen.h). So are the schedules that the search makes for slower networks, and the defensive
///   ones (Defensive.h). For slower networks the search also merges no more than what packing may
///   cost on nominal times.
/// - In the best of these more is merged (MergeMore.h), at several costs.
/// - Each candidate is replayed in the standard scenarios (Replay.h). Its regret in a scenario is
///   how much longer its step is there than the shortest of all schedules.
/// - Candidates whose nominal step is more than `robust` times 1 % longer than that of the plan for
///   nominal times, or longer than the program's, are left out. Of the others the one with the
///   least (1 - robust) nominal regret + robust (worst + mean regret) / 2 is taken, and of those
///   that differ by less than a hundredth of a percent the first: the search begins with the order
///   of the program. Where it is longer than a defensive schedule, or its regret is larger than
///   a few percent (more where collectives take longer), by how much counts fifty times as much.
/// - In the best by this measure small changes are tried that make it better (Refine.h), and where
///   it is still longer than a defensive schedule, or its regret is large, changes that lead
///   through worse plans. Those that are chosen among are also compared with the defensive ones
///   under other draws of kernel times than the scenarios have.
///
/// With `robust` 0 it is the schedule that searchSchedules finds, with slack where that leaves its
/// step as it is. The larger the program, the fewer candidates.
SearchResult searchRobust(const Graph &graph, const cost::CostModel &model,
                          const SearchOptions &options, double robust);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_ROBUSTSEARCH_H
