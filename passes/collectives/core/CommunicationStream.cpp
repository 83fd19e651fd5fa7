// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/CommunicationStream.h"

using namespace shardc;
using namespace shardc::collectives;

CommunicationStream::CommunicationStream(std::vector<TaskId> collectives,
                                         std::span<const double> us,
                                         std::span<const double> neededUs) {
  std::sort(collectives.begin(), collectives.end(), [&](TaskId a, TaskId b) {
    return std::pair(neededUs[a], a) < std::pair(neededUs[b], b);
  });
  std::vector<int64_t> values;
  int64_t end = 0;
  for (TaskId task : collectives) {
    place.push_back({task, static_cast<uint32_t>(place.size())});
    duration.push_back(ticks(us[task]));
    end += duration.back();
    values.push_back(end - ticks(neededUs[task]));
  }
  std::sort(place.begin(), place.end());
  lateness.emplace(values);
}

void CommunicationStream::remove(TaskId task, double latestStartUs, uint64_t operandBytes) {
  queue.erase({latestStartUs, task});
  if (oldReleasing.erase(task))
    packBytes -= operandBytes;
  auto it = std::lower_bound(place.begin(), place.end(), std::pair<TaskId, uint32_t>(task, 0));
  uint32_t at = it->second;
  lateness->add(at, duration.size(), -duration[at]);
  lateness->add(at, at + 1, RangeMaxTree::lowest / 2);
}

double CommunicationStream::latenessUs(double delayUs, double progressUs) const {
  return static_cast<double>(lateness->maxFrom(0)) / ticksPerUs + delayUs + progressUs;
}
