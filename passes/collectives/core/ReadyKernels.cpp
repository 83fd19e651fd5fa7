// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/ReadyKernels.h"

using namespace shardc;
using namespace shardc::collectives;

void ReadyKernels::addToSums(uint32_t age, double us) {
  for (uint32_t i = age + 1; i <= olderSums.size(); i += i & -i)
    olderSums[i - 1] += us;
}

double ReadyKernels::olderUs(TaskId kernel) const {
  double sum = 0;
  for (uint32_t i = entries[kernel].age; i != 0; i -= i & -i)
    sum += olderSums[i - 1];
  return sum;
}

void ReadyKernels::add(TaskId kernel, double latestStartUs, uint32_t age, double us) {
  if (kernel >= entries.size())
    entries.resize(kernel + 1);
  entries[kernel] = {latestStartUs, us, age, true};
  byUrgency.push({latestStartUs, kernel});
  byAge.push({static_cast<double>(age), kernel});
  addToSums(age, us);
}

void ReadyKernels::remove(TaskId kernel) {
  Entry &entry = entries[kernel];
  entry.ready = false;
  addToSums(entry.age, -entry.us);
}

TaskId ReadyKernels::first(Heap &heap) {
  while (!heap.empty() && !entries[heap.top().second].ready)
    heap.pop();
  return heap.empty() ? none : heap.top().second;
}
