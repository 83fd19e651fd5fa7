// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The schedule that needs no times: kernels and collectives keep their order, each collective
// starts as early and each wait stands as late as data and memory allow. Only reductions that
// nothing but the caller reads, such as those of gradients, go in the order in which the program
// makes what they reduce, where memory allows that: in the order of its parameters, in which a
// program may list them, all would wait for the first parameter's, which comes last.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_DEFENSIVE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_DEFENSIVE_H

#include "passes/collectives/core/ScheduleSearch.h"

namespace shardc::collectives {

/// How large buckets of a defensive schedule may be where the caller has no caps of its own.
inline constexpr double defensiveBucketBytes = 500e6;

/// Nothing if the program, or what its buckets take, does not meet the limit. `problem` is of the
/// graph's own order. With buckets,
/// collectives are merged in program order up to the cap. The schedule depends on no durations.
std::optional<Decision> defensiveSchedule(const Problem &problem, const cost::CostModel &model,
                                          const SearchOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_DEFENSIVE_H
