// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One group's stream during scheduling: which collectives could start now, and whether those that
// are left will come too late if none of them is merged.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_COMMUNICATIONSTREAM_H
#define SHARDC_PASSES_COLLECTIVES_CORE_COMMUNICATIONSTREAM_H

#include "passes/collectives/core/Problem.h"
#include "passes/collectives/core/RangeMaxTree.h"

#include <optional>
#include <set>

namespace shardc::collectives {

class CommunicationStream {
public:
  /// Collectives of one group with the time each takes, and the time at which its result is needed
  /// (on the axis of the reference schedule).
  CommunicationStream() = default;
  CommunicationStream(std::vector<TaskId> collectives, std::span<const double> us,
                      std::span<const double> neededUs);

  /// When what has been started ends.
  double freeUs = 0;
  /// A start was refused for want of memory when so many bytes were live: no use to try again
  /// before there are fewer, or other collectives are ready.
  uint64_t refusedBytes = UINT64_MAX;

  /// Ready collectives, the one that must start first at the front.
  const std::set<std::pair<double, TaskId>> &ready() const { return queue; }
  /// Those of them whose end frees memory, the oldest at the front.
  const std::set<TaskId> &releasing() const { return oldReleasing; }
  /// What it takes to pack them.
  uint64_t releasingBytes() const { return packBytes; }
  void addReady(TaskId task, double latestStartUs, bool releases, uint64_t operandBytes) {
    refusedBytes = UINT64_MAX;
    queue.insert({latestStartUs, task});
    if (releases) {
      oldReleasing.insert(task);
      packBytes += operandBytes;
    }
  }

  /// A collective starts now, or is gone with its bucket.
  void remove(TaskId task, double latestStartUs, uint64_t operandBytes);

  /// If all remaining collectives ran one after the other in the order in which they are needed,
  /// the first in `delayUs` from now, and the program has now come to `progressUs` on the axis of
  /// the reference: how much too late the worst of them would be. Negative if all are in time. When
  /// their operands become available is ignored, so this is a lower bound.
  double latenessUs(double delayUs, double progressUs) const;

private:
  static constexpr double ticksPerUs = 1024;
  static int64_t ticks(double us) { return static_cast<int64_t>(us * ticksPerUs); }

  std::set<std::pair<double, TaskId>> queue;
  std::set<TaskId> oldReleasing;
  uint64_t packBytes = 0;
  std::vector<std::pair<TaskId, uint32_t>> place; // sorted by task: place in the order of need
  std::vector<int64_t> duration;                  // by place
  /// By place: end of the collective, from 0 on, minus the time at which it is needed.
  std::optional<RangeMaxTree> lateness;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_COMMUNICATIONSTREAM_H
