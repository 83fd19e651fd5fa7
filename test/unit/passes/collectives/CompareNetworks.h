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
};

inline constexpr double comparedNetworks[] = {1, 1.2, 1.5, 2};

Comparison compareWithOthers(const Graph &graph, const cost::CostModel &model,
                             const OptimizeOptions &options = {});

} // namespace shardc::collectives::test

#endif // SHARDC_TEST_UNIT_PASSES_COLLECTIVES_COMPARENETWORKS_H
