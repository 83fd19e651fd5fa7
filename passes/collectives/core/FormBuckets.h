// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bucketing on its own: collectives are merged up to a cap while kernels keep the order of the
// program. What a schedule would gain or lose is not looked at.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_FORMBUCKETS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_FORMBUCKETS_H

#include "passes/collectives/core/Buckets.h"
#include "passes/collectives/core/Plan.h"

namespace shardc::collectives {

/// The order in which collectives of a key are put into buckets (B8).
enum class BucketOrder : uint8_t {
  /// Of the first use of a result, also ahead of the collective's place in the program: what a
  /// gather needs is moved up, if it is only a few kernels that wait for no communication.
  FirstUse,
  /// Of the program: a bucket holds what has been produced when it is closed.
  Production,
};

struct FormOptions {
  BucketOptions buckets;
  BucketOrder gathers = BucketOrder::FirstUse;
  BucketOrder reduces = BucketOrder::Production;
  /// Bytes, counted as peak_hold_bytes; no less than the peak of the program.
  uint64_t memoryLimit = UINT64_MAX;
  bool flat = false;
};

struct FormResult {
  Plan plan;
  /// By bucket of the plan.
  std::vector<CloseReason> closed;
  std::vector<uint64_t> capBytes;
  /// By task, for collectives in no bucket.
  std::vector<AloneReason> alone;
};

/// Walks through the program and leaves collectives in open buckets until a result is needed or the
/// bucket is full. A collective joins only when its operands exist, so that no order of buckets can
/// be cyclic; whoever comes too late starts the next bucket of its key (B3, B4). With automatic
/// caps a bucket is full when latency is a fifth of its time.
FormResult formBuckets(const Problem &problem, const cost::CostModel &model, const BucketKeys &keys,
                       const FormOptions &options);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_FORMBUCKETS_H
