// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernels that could run now, by urgency and by age.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_READYKERNELS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_READYKERNELS_H

#include "passes/collectives/core/Problem.h"

#include <queue>

namespace shardc::collectives {

/// A set of kernels with two orders. Age is a kernel's place in the base order: running the oldest
/// first follows the program. All operations are logarithmic, amortised.
class ReadyKernels {
public:
  /// Ages are below `numAges`.
  explicit ReadyKernels(uint32_t numAges) : olderSums(numAges) {}

  void add(TaskId kernel, double latestStartUs, uint32_t age, double us);
  void remove(TaskId kernel);
  bool contains(TaskId kernel) const { return kernel < entries.size() && entries[kernel].ready; }

  /// `none` if nothing is ready.
  TaskId mostUrgent() { return first(byUrgency); }
  TaskId oldest() { return first(byAge); }
  double latestStartUs(TaskId kernel) const { return entries[kernel].latestStartUs; }
  double durationUs(TaskId kernel) const { return entries[kernel].us; }

  /// How long the ready kernels that are older than this one take together.
  double olderUs(TaskId kernel) const;

  /// Offers up to `count` kernels, the most urgent (or the oldest) first, until `run` takes one;
  /// `run` removes what it takes. Returns whether it took any.
  template <typename Fn> bool offer(bool oldestFirst, int count, Fn run);

private:
  struct Entry {
    double latestStartUs = 0, us = 0;
    uint32_t age = 0;
    bool ready = false;
  };
  using Ranked = std::pair<double, TaskId>;
  using Heap = std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>>;

  TaskId first(Heap &heap);
  void addToSums(uint32_t age, double us);

  std::vector<Entry> entries;    // by kernel
  Heap byUrgency, byAge;         // may hold kernels that are gone
  std::vector<double> olderSums; // a Fenwick tree of durations over ages
};

template <typename Fn> bool ReadyKernels::offer(bool oldestFirst, int count, Fn run) {
  Heap &heap = oldestFirst ? byAge : byUrgency;
  std::vector<Ranked> refused;
  bool ran = false;
  for (; count != 0 && !ran; --count) {
    TaskId kernel = first(heap);
    if (kernel == none)
      break;
    Ranked top = heap.top();
    heap.pop();
    ran = run(kernel);
    if (!ran)
      refused.push_back(top);
  }
  for (const Ranked &entry : refused)
    heap.push(entry);
  return ran;
}

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_READYKERNELS_H
