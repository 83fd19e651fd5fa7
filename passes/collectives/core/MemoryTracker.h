// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keeps a schedule under a memory limit while it is being made, so that it can always be finished.
//
// A scheduler that looks only at the bytes live now can start so much early that nothing which is
// left fits. So this also follows the *completion*: what memory would be, step by step, if from
// here on all remaining steps ran in their base order. The base order fits under the limit, hence
// so does the completion at the beginning; a step is refused if after it the completion would not
// fit. The first remaining step does not change the completion: it can always run.
//
// A storage is live in the completion from now (if it exists) or else from its first step, to the
// last of its steps that has not run. Steps that run early lengthen such intervals at the front,
// steps that run late keep them long at the back. A tree over the steps holds the sum of all
// intervals at each step and its maximum: an update is O(log steps), and steps in base order need
// none. Memory is counted as peak_hold_bytes: operands of a collective are kept until its wait.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_MEMORYTRACKER_H
#define SHARDC_PASSES_COLLECTIVES_CORE_MEMORYTRACKER_H

#include "passes/collectives/core/Problem.h"
#include "passes/collectives/core/RangeMaxTree.h"

namespace shardc::collectives {

class MemoryTracker {
public:
  /// `flat`: buckets are neither packed nor unpacked.
  MemoryTracker(const Problem &problem, uint64_t limitBytes, bool flat);

  /// The peak of the base order; a schedule can only be kept under a limit that is no lower.
  uint64_t basePeakBytes() const { return basePeak; }

  /// Runs a step (a task, or the wait for a collective) if it fits with `reserve` bytes to spare;
  /// otherwise changes nothing.
  bool tryStep(StepId step, uint64_t reserve = 0);
  /// Runs a step unchecked: for the first remaining one, and for waits.
  void runStep(StepId step);

  /// By how many bytes a step that has not run makes the live bytes grow, once it is over.
  int64_t growth(StepId step) const;

  /// Packs and starts a bucket of collectives, each of which has a wait, if it fits. Buckets are
  /// numbered in the order in which they are started.
  bool tryStartBucket(std::span<const TaskId> members);
  /// Waits for a bucket and unpacks it, if that fits.
  bool tryFinishBucket(uint32_t bucket, std::span<const TaskId> members);
  /// The same unchecked: when the wait for one of its members is the first remaining step.
  void finishBucket(uint32_t bucket, std::span<const TaskId> members);

  /// The first step that has not run; numSteps at the end.
  StepId firstRemaining() const { return frontier; }
  bool hasRun(StepId step) const { return executed[step]; }
  uint64_t currentBytes() const { return current; }
  uint64_t peakBytes() const { return peak; }

private:
  struct Bucket {
    int64_t packedBytes = 0, resultBytes = 0;
    /// Where the completion waits for the bucket.
    StepId finishStep = 0;
    /// Results of a reduce-scatter share a storage: how many are in use, and where it ends.
    uint32_t resultsInUse = 0;
    StepId resultEnd = 0;
  };
  struct TaskBytes {
    /// As they are packed, and the storages that begin with the collective.
    int64_t operands = 0, results = 0, newResults = 0;
    int64_t freed = 0;     // at most, as long as no operand is in the results of a bucket
    bool mayShare = false; // whether one may be
  };
  struct Change {
    enum Kind : uint8_t { Range, Current, UseDone, LastUse, Birth, Born, Executed, ResultsInUse };
    Kind kind;
    uint32_t a, b;
    int64_t value;
  };

  // Each of these notes in the journal how to take it back.
  void addRange(StepId begin, StepId end, int64_t delta);
  void addCurrent(int64_t delta);
  void markExecuted(StepId step);
  void allocate(StorageId storage);
  void moveBirth(StorageId storage, StepId step);
  void finishUse(StorageId storage, uint32_t index);
  void release(StorageId storage, StepId lastStep);

  int64_t mostFreed(TaskId task) const;
  bool isTooLarge(std::span<const TaskId> members);
  void applyStep(StepId step);
  void applyStart(uint32_t bucket, std::span<const TaskId> members);
  void applyFinish(uint32_t bucket, std::span<const TaskId> members);
  void shareResults(uint32_t bucket, std::span<const TaskId> members);
  bool commitIfFits(uint64_t reserve = 0);
  void commit();
  void undo();

  template <typename Fn>
  void forEachStorage(std::span<const TaskId> members, bool results, Fn fn) const;
  template <typename Fn> void forEachNewResult(std::span<const TaskId> members, Fn fn) const;
  void finishUseAt(StorageId storage, StepId step);
  bool unpacks(std::span<const TaskId> members) const;

  const Problem &problem;
  int64_t limit;
  bool flat;
  uint64_t basePeak = 0;
  RangeMaxTree completion;
  std::vector<bool> executed;
  StepId frontier = 0, savedFrontier = 0;
  // By storage.
  std::vector<bool> born;
  std::vector<StepId> birth;
  /// Index of the last step that has not run, `none` once there is none.
  std::vector<uint32_t> lastUse;
  /// The bucket whose result it is a part of, or `none`.
  std::vector<uint32_t> resultOf;
  std::vector<TaskBytes> taskBytes; // by task
  /// By entry of problem.stepsOfStorage.
  std::vector<bool> useDone;
  std::vector<Bucket> buckets;
  int64_t current = 0, instantPeak = 0, peak = 0;
  std::vector<Change> journal;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_MEMORYTRACKER_H
