// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ways to order kernels and starts that the search tries at every memory level.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULEPOLICIES_H
#define SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULEPOLICIES_H

#include "passes/collectives/core/ListScheduler.h"

namespace shardc::collectives {

struct PolicyInput {
  const Problem &problem;
  const cost::CostModel &model;
  const TaskTimes &times;
  /// Outlive the policies.
  const Reference &program, &longestPath;
  /// Whether collectives may be merged.
  bool merge = true;
  const BucketKeys &keys;
  /// See SearchOptions.
  std::span<const double> packingUs = {};
};

/// The most promising ones, fewer for large programs: orders without merging first, those that keep
/// the order of the program before the others, then those that merge.
std::vector<SchedulePolicy> schedulePolicies(const PolicyInput &input);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_SCHEDULEPOLICIES_H
