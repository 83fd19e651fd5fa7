// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How good a plan is on networks that it was not made for.

#ifndef SHARDC_TEST_UNIT_PASSES_COLLECTIVES_COMPARENETWORKS_H
#define SHARDC_TEST_UNIT_PASSES_COLLECTIVES_COMPARENETWORKS_H

#include "passes/collectives/core/Optimize.h"

namespace shardc::collectives::test {

/// How many times as long our step is as that of others, each replayed under the same times.
struct Comparison {
  /// What could not be planned, and for whom; empty if nothing.
  std::string error;
  /// By network of `comparedNetworks`: over the plan that is made for that network alone.
  std::vector<double> overOwn;
  /// The worst over all networks, and over five draws of kernels that are up to a fifth off: over
  /// the shorter one of the two defensive schedules at each. 0 if they do not fit.
  double overDefensive = 0;
  double nominalOverBound = 0;
  /// By network: a lower bound of overOwn for every plan whose nominal step is at most half a
  /// percent longer than that of the plan for nominal times. Where it is above 1, what hides
  /// communication on that network costs too much on a fast one.
  std::vector<double> least;
  /// The worst over all networks: the same lower bound over what the goals allow there (`goals`
  /// times the plan that is made for that network, and the shorter defensive schedule). Above 1 the
  /// goals contradict each other: no plan whatever reaches them all.
  double leastOverGoal = 0;

  /// Whether our plan reaches all goals.
  bool reachesGoals() const;
};

inline constexpr double comparedNetworks[] = {1, 1.2, 1.5, 2};
/// By network: how many times as long as a plan made for it ours may be.
inline constexpr double goals[] = {1.005, 1.03, 1.05, 1.08};
/// By what steps may differ that are the same but for rounding.
inline constexpr double goalRounding = 1e-6;

/// A lower bound of the step on a network, of every plan that takes at most `nominalUs` on nominal
/// times.
double leastStepUs(const Graph &graph, const cost::CostModel &model, double network,
                   double nominalUs, bool flat = false);

Comparison compareWithOthers(const Graph &graph, const cost::CostModel &model,
                             const OptimizeOptions &options = {});

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_COMPARENETWORKS_H
