// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merges more collectives of a plan than nominal times ask for. A schedule merges what would
// otherwise be late; where the network is slower, more is late, and each merge saves a latency. It
// costs packing, which is time of the compute stream.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_MERGEMORE_H
#define SHARDC_PASSES_COLLECTIVES_CORE_MERGEMORE_H

#include "passes/collectives/core/ScheduleSearch.h"

namespace shardc::collectives {

struct MergeOptions {
  BucketOptions buckets = {};
  /// Packing costs nothing.
  bool flat = false;
  /// What all that is packed in addition may take, in microseconds.
  double packingUs = 0;
  /// How much later a bucket may end than its first member did, in latencies, where nothing is
  /// hidden.
  double patience = 1;
};

/// The plan with collectives, and buckets, of one key merged, or nothing where there are none to
/// merge. Kernels keep their places. A bucket starts where its last member did, and is waited for
/// where its first member was, if it ends by then on nominal times: the step is then longer by what
/// packing takes at most. What saves most latency for its packing is merged.
///
/// `problem` is of the graph's own order, and `decision` has a plan that checkPlan accepts. The
/// memory that the new plan takes is not looked at. O(n log n).
std::optional<Decision> mergeMore(const Problem &problem, const BucketKeys &keys,
                                  const cost::CostModel &model, const Decision &decision,
                                  const MergeOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_MERGEMORE_H
