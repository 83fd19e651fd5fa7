// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One pass over the program in simulated time that decides what the compute stream issues next,
// when each collective starts, with which others it shares a bucket, and when it is waited for.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULER_H
#define SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULER_H

#include "passes/collectives/core/Buckets.h"
#include "passes/collectives/core/IdealSchedule.h"
#include "passes/collectives/core/Plan.h"

#include <limits>

namespace shardc::collectives {

/// Where each task is in the program's own order, in microseconds of kernels before it, and the
/// first use of a result of it (the end of the program if there is none).
struct ProgramTimes {
  ProgramTimes(const Problem &problem, const TaskTimes &times);
  std::vector<double> startUs, neededUs;
};

/// What stays the same over all schedules of a program.
struct ScheduleInput {
  const Problem &problem;
  const TaskTimes &times;
  const ProgramTimes &program;
  const cost::CostModel &model;
  const BucketKeys &keys;
  const BucketOptions &buckets;
  /// Bytes, counted as peak_hold_bytes; at least the peak of the base order.
  uint64_t memoryLimit = UINT64_MAX;
  /// Buckets need no packing.
  bool flat = false;
};

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// How to choose. Different programs want different choices, so several are tried. The windows
/// count microseconds of kernels in the program's own order, from where it would be if what has run
/// by now had run in that order.
struct SchedulePolicy {
  const Reference *reference = nullptr;
  /// How long the older kernels that wait may take together before the oldest goes first. 0 follows
  /// the program and deviates from it only where it would stall; infinity always takes the kernel
  /// with the earliest latest start.
  double deferUs = 0;
  /// On a stream with collectives whose end frees memory, others go first only if they are needed
  /// within this window.
  double urgentUs = 0;
  /// A collective starts at most so long before it is needed, unless the compute stream stalls.
  double prefetchUs = 0;
  /// A kernel runs at most so long before its turn.
  double earlyUs = 0;
  /// Whether collectives are merged (S3).
  bool merge = false;
  /// A collective joins a bucket only if packing it costs at most this part of its latency.
  double packShare = 1;
  /// How long, in latencies, the first member of a bucket may be held up by the others where it has
  /// no time to spare.
  double patience = 1;
};

struct ScheduleResult {
  Plan plan;
  double stepUs = 0;
  uint64_t peakBytes = 0;
  /// The memory limit that it was made for.
  uint64_t level = 0;
  /// How often something that should have run did not fit.
  uint64_t memoryRefusals = 0;
  /// By bucket of the plan.
  std::vector<CloseReason> closed;
  std::vector<uint64_t> capBytes;
  /// By task, for collectives in no bucket.
  std::vector<AloneReason> alone;
};

ScheduleResult listSchedule(const ScheduleInput &input, const SchedulePolicy &policy);

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULER_H
