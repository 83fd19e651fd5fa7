// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which of several variants of a program is the best once it is scheduled: what the passes ask that
// take collectives apart.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_PROGRAMTRIALS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_PROGRAMTRIALS_H

#include "passes/collectives/core/Optimize.h"

namespace shardc::collectives {

/// Schedules a program as it is and variants of it, and says which is the best, by the measure that
/// plans are chosen by (RobustSearch.h): the nominal step and its regrets on slower networks, where
/// the regret is how much longer a step is than the shortest of all variants. Variants whose
/// nominal step is longer than the shortest by more than `robust` allows are left out. Other
/// scenarios say nothing about variants: the parts of a kernel draw other factors than the kernel,
/// and the parts of a collective may have groups of their own. Variants keep to the memory limit
/// that the program as it is has. Deterministic.
class ProgramTrials {
public:
  /// Beyond so many nodes each schedule takes so long that callers try fewer variants.
  static constexpr size_t largeGraph = 20000;

  /// `options`: as the program is optimised afterwards. `leastGain`: the part of the step that must
  /// be saved; less is within what a prediction cannot tell.
  ProgramTrials(const Graph &graph, const cost::CostModel &model, const OptimizeOptions &options,
                double leastGain);

  /// Schedules the program as it is. Must be called first; false where that fails, which whoever
  /// schedules it afterwards reports.
  bool begin();
  /// Schedules a variant. The first one has the number 0.
  void add(const Graph &variant);
  /// The number of the best variant; nothing if none is better by `leastGain` than the program as
  /// it is. Of equally good ones the first.
  std::optional<size_t> best() const;

  /// What the schedule of the program as it is does not hide of a collective, or of the bucket that
  /// it is in.
  double exposedUs(NodeId node) const { return exposed[node]; }
  /// Nominal steps of the program as it is, and of the best variant (of the program, if there is
  /// none); 0 before `begin`.
  double stepBeforeUs() const { return steps.empty() ? 0 : steps.front().front(); }
  double stepAfterUs() const;
  /// How many programs were scheduled.
  unsigned count() const { return scheduled; }

private:
  OptimizeResult schedule(const Graph &of);

  const Graph &graph;
  const cost::CostModel &model;
  OptimizeOptions options;
  const double leastGain;
  std::vector<double> exposed;
  /// Of the program and then of the variants, by scenario, the nominal one first; empty for
  /// what could not be scheduled.
  std::vector<std::vector<double>> steps;
  unsigned scheduled = 0;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_PROGRAMTRIALS_H
