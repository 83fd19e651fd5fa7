// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/MemoryTracker.h"

#include "passes/collectives/core/Plan.h"

using namespace shardc;
using namespace shardc::collectives;

/// Calls fn(task, storage) for each operand, or each result, that is no input.
template <typename Fn>
void MemoryTracker::forEachStorage(std::span<const TaskId> members, bool results, Fn fn) const {
  for (TaskId task : members) {
    NodeId node = problem.nodeOf[task];
    for (ValueId value : results ? problem.graph.results(node) : problem.graph.operands(node))
      if (StorageId storage = problem.storageOf[value]; storage != none)
        fn(task, storage);
  }
}

/// The same for results that begin with the collective: those in place of operands are there.
template <typename Fn>
void MemoryTracker::forEachNewResult(std::span<const TaskId> members, Fn fn) const {
  for (TaskId task : members)
    for (ValueId value : problem.graph.results(problem.nodeOf[task]))
      if (StorageId storage = problem.storageOf[value];
          storage != none && !problem.graph.isInPlace(value))
        fn(task, storage);
}

/// Live bytes at each step of the base order.
static std::vector<int64_t> baseProfile(const Problem &problem) {
  std::vector<int64_t> profile(problem.numSteps + 1);
  for (StorageId storage = 0; storage != problem.storageBytes.size(); ++storage) {
    std::span<const StepId> steps = problem.stepsOfStorage[storage];
    int64_t bytes = problem.storageBytes[storage];
    profile[steps.front()] += bytes;
    if (!problem.storagePinned[storage])
      profile[steps.back() + 1] -= bytes;
  }
  int64_t live = problem.constantBytes;
  for (int64_t &bytes : profile)
    bytes = live += bytes;
  profile.pop_back();
  return profile;
}

MemoryTracker::MemoryTracker(const Problem &problem, uint64_t limitBytes, bool flat)
    : problem(problem), limit(std::min<uint64_t>(limitBytes, INT64_MAX)), flat(flat),
      completion(baseProfile(problem)), executed(problem.numSteps),
      born(problem.storageBytes.size()), birth(problem.storageBytes.size()),
      lastUse(problem.storageBytes.size()), resultOf(problem.storageBytes.size(), none),
      useDone(problem.stepsOfStorage.numEntries()), current(problem.constantBytes),
      instantPeak(current), peak(current) {
  basePeak = std::max(current, completion.maxFrom(0));
  for (StorageId storage = 0; storage != problem.storageBytes.size(); ++storage) {
    birth[storage] = problem.stepsOfStorage[storage].front();
    lastUse[storage] = problem.stepsOfStorage[storage].size() - 1;
  }
  taskBytes.resize(problem.numTasks());
  std::vector<bool> scattered(problem.storageBytes.size());
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (problem.isCollective(task) && !unpacks(std::span(&task, 1)))
      forEachStorage(std::span(&task, 1), true,
                     [&](TaskId, StorageId storage) { scattered[storage] = true; });
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    if (!problem.isCollective(task))
      continue;
    TaskBytes &bytes = taskBytes[task];
    bytes.operands = problem.graph.operandBytes(problem.nodeOf[task]);
    bytes.results = problem.graph.resultBytes(problem.nodeOf[task]);
    forEachNewResult(std::span(&task, 1), [&](TaskId, StorageId storage) {
      bytes.newResults += problem.storageBytes[storage];
    });
    bytes.freed = mostFreed(task);
    forEachStorage(std::span(&task, 1), false, [&](TaskId, StorageId storage) {
      bytes.mayShare = bytes.mayShare || scattered[storage];
    });
  }
}

//===----------------------------------------------------------------------===//
// Changes and their journal
//===----------------------------------------------------------------------===//

void MemoryTracker::addRange(StepId begin, StepId end, int64_t delta) {
  // Steps before the frontier are over: nothing looks at them again.
  begin = std::max(begin, frontier);
  if (begin >= end || delta == 0)
    return;
  completion.add(begin, end, delta);
  journal.push_back({Change::Range, begin, end, delta});
}

void MemoryTracker::addCurrent(int64_t delta) {
  current += delta;
  instantPeak = std::max(instantPeak, current);
  journal.push_back({Change::Current, 0, 0, delta});
}

void MemoryTracker::markExecuted(StepId step) {
  executed[step] = true;
  journal.push_back({Change::Executed, step, 0, 0});
  while (frontier != problem.numSteps && executed[frontier])
    ++frontier;
}

void MemoryTracker::moveBirth(StorageId storage, StepId step) {
  int64_t bytes = problem.storageBytes[storage];
  addRange(step, birth[storage], bytes);
  addRange(birth[storage], step, -bytes);
  journal.push_back({Change::Birth, storage, birth[storage], 0});
  birth[storage] = step;
}

void MemoryTracker::allocate(StorageId storage) {
  int64_t bytes = problem.storageBytes[storage];
  born[storage] = true;
  journal.push_back({Change::Born, storage, 0, 0});
  addCurrent(bytes);
  addRange(0, birth[storage], bytes);
}

void MemoryTracker::finishUse(StorageId storage, uint32_t index) {
  size_t entry = problem.stepsOfStorage.offset(storage) + index;
  if (useDone[entry])
    return;
  useDone[entry] = true;
  journal.push_back({Change::UseDone, static_cast<uint32_t>(entry), 0, 0});
  if (lastUse[storage] != index || problem.storagePinned[storage])
    return;
  std::span<const StepId> steps = problem.stepsOfStorage[storage];
  uint32_t last = index;
  while (last != 0 && useDone[entry - index + last - 1])
    --last;
  journal.push_back({Change::LastUse, storage, index, 0});
  if (last == 0) {
    lastUse[storage] = none;
    release(storage, steps[index]);
    return;
  }
  lastUse[storage] = last - 1;
  if (resultOf[storage] == none)
    addRange(steps[last - 1] + 1, steps[index] + 1, -int64_t(problem.storageBytes[storage]));
}

void MemoryTracker::release(StorageId storage, StepId lastStep) {
  uint32_t bucket = resultOf[storage];
  if (bucket == none) {
    addCurrent(-int64_t(problem.storageBytes[storage]));
    addRange(0, lastStep + 1, -int64_t(problem.storageBytes[storage]));
    return;
  }
  journal.push_back({Change::ResultsInUse, bucket, 0, 0});
  if (--buckets[bucket].resultsInUse == 0) {
    addCurrent(-buckets[bucket].resultBytes);
    addRange(0, buckets[bucket].resultEnd + 1, -buckets[bucket].resultBytes);
  }
}

bool MemoryTracker::commitIfFits(uint64_t reserve) {
  if (instantPeak <= limit - static_cast<int64_t>(reserve) &&
      completion.maxFrom(frontier) <= limit) {
    commit();
    return true;
  }
  undo();
  return false;
}

void MemoryTracker::commit() {
  peak = std::max(peak, instantPeak);
  instantPeak = current;
  savedFrontier = frontier;
  journal.clear();
}

void MemoryTracker::undo() {
  for (; !journal.empty(); journal.pop_back()) {
    const Change &change = journal.back();
    switch (change.kind) {
    case Change::Range:
      completion.add(change.a, change.b, -change.value);
      break;
    case Change::Current:
      current -= change.value;
      break;
    case Change::UseDone:
      useDone[change.a] = false;
      break;
    case Change::LastUse:
      lastUse[change.a] = change.b;
      break;
    case Change::Birth:
      birth[change.a] = change.b;
      break;
    case Change::Born:
      born[change.a] = false;
      break;
    case Change::Executed:
      executed[change.a] = false;
      break;
    case Change::ResultsInUse:
      ++buckets[change.a].resultsInUse;
      break;
    }
  }
  frontier = savedFrontier;
  instantPeak = current;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void MemoryTracker::applyStep(StepId step) {
  markExecuted(step);
  for (auto [storage, index] : problem.storagesOfStep[step])
    if (!born[storage])
      allocate(storage);
  for (auto [storage, index] : problem.storagesOfStep[step])
    finishUse(storage, index);
}

bool MemoryTracker::tryStep(StepId step, uint64_t reserve) {
  // Most refusals need no look at the completion.
  int64_t allocated = 0;
  for (auto [storage, index] : problem.storagesOfStep[step])
    if (!born[storage])
      allocated += problem.storageBytes[storage];
  if (current + allocated > limit - static_cast<int64_t>(reserve))
    return false;
  applyStep(step);
  return commitIfFits(reserve);
}

void MemoryTracker::runStep(StepId step) {
  applyStep(step);
  commit();
}

int64_t MemoryTracker::growth(StepId step) const {
  int64_t bytes = 0;
  for (auto [storage, index] : problem.storagesOfStep[step]) {
    if (!born[storage])
      bytes += problem.storageBytes[storage];
    // The last use is the only one left if no earlier one is.
    bool last = !problem.storagePinned[storage] && lastUse[storage] == index;
    size_t entry = problem.stepsOfStorage.offset(storage);
    for (uint32_t i = 0; last && i != index; ++i)
      last = useDone[entry + i];
    if (last)
      bytes -= problem.storageBytes[storage];
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

bool MemoryTracker::unpacks(std::span<const TaskId> members) const {
  return needsUnpack(problem.graph.kindOf(problem.nodeOf[members.front()]));
}

void MemoryTracker::finishUseAt(StorageId storage, StepId step) {
  std::span<const StepId> steps = problem.stepsOfStorage[storage];
  auto it = std::lower_bound(steps.begin(), steps.end(), step);
  if (it != steps.end() && *it == step)
    finishUse(storage, it - steps.begin());
}

/// What packing a collective can free.
int64_t MemoryTracker::mostFreed(TaskId task) const {
  int64_t bytes = 0;
  forEachStorage(std::span(&task, 1), false, [&](TaskId, StorageId storage) {
    if (!problem.storagePinned[storage])
      bytes += resultOf[storage] == none ? problem.storageBytes[storage]
                                         : buckets[resultOf[storage]].resultBytes;
  });
  return bytes;
}

/// Whether what starting a bucket takes, less all that it could free, is surely too much. Most
/// refusals need no more than this: where memory is scarce, large buckets are tried again and
/// again.
bool MemoryTracker::isTooLarge(std::span<const TaskId> members) {
  int64_t packed = 0, results = 0, newResults = 0, freed = 0;
  StepId first = problem.numSteps, finish = problem.numSteps;
  for (TaskId task : members) {
    const TaskBytes &bytes = taskBytes[task];
    packed += bytes.operands;
    results += bytes.results;
    newResults += bytes.newResults;
    freed += bytes.mayShare ? mostFreed(task) : bytes.freed;
    first = std::min(first, problem.stepOfTask[task]);
    finish = std::min(finish, problem.stepOfWait[task]);
  }
  if (current + packed > limit || current + packed - freed + results > limit)
    return true;
  // The first step that is left once the members have started.
  StepId begin = frontier;
  if (first == begin) {
    for (TaskId task : members)
      executed[problem.stepOfTask[task]] = true;
    while (begin != finish && executed[begin])
      ++begin;
    for (TaskId task : members)
      executed[problem.stepOfTask[task]] = false;
  }
  auto isAbove = [&](StepId end, int64_t more) {
    return completion.firstAbove(begin, limit - more) < end;
  };
  // The completion has results from the steps on in which the base order starts their collectives.
  if (!unpacks(members))
    return isAbove(finish + 1, packed - freed) ||
           isAbove(std::min(first, finish), packed + newResults - freed);
  int64_t there = 0;
  for (TaskId task : members)
    if (problem.stepOfTask[task] < finish)
      there += taskBytes[task].newResults;
  return isAbove(finish, packed + results - freed - there);
}

bool MemoryTracker::tryStartBucket(std::span<const TaskId> members) {
  if (!flat && isTooLarge(members))
    return false;
  uint32_t bucket = buckets.size();
  buckets.emplace_back();
  applyStart(bucket, members);
  if (commitIfFits())
    return true;
  // Undoing does not know of storages that were given to the bucket.
  forEachStorage(members, true, [&](TaskId, StorageId storage) {
    if (resultOf[storage] == bucket)
      resultOf[storage] = none;
  });
  buckets.pop_back();
  return false;
}

bool MemoryTracker::tryFinishBucket(uint32_t bucket, std::span<const TaskId> members) {
  applyFinish(bucket, members);
  return commitIfFits();
}

void MemoryTracker::finishBucket(uint32_t bucket, std::span<const TaskId> members) {
  applyFinish(bucket, members);
  commit();
}

void MemoryTracker::applyStart(uint32_t id, std::span<const TaskId> members) {
  if (flat) {
    for (TaskId task : members)
      applyStep(problem.stepOfTask[task]);
    return;
  }
  Bucket &bucket = buckets[id];
  bucket.finishStep = problem.numSteps;
  for (TaskId task : members) {
    NodeId node = problem.nodeOf[task];
    bucket.packedBytes += problem.graph.operandBytes(node);
    bucket.resultBytes += problem.graph.resultBytes(node);
    bucket.finishStep = std::min(bucket.finishStep, problem.stepOfWait[task]);
    markExecuted(problem.stepOfTask[task]);
  }
  // An allocation begins with its first use, which may be this one.
  forEachStorage(members, false, [&](TaskId, StorageId storage) {
    if (!born[storage])
      allocate(storage);
  });
  // The pack: the operands are free after it, the packed buffer stays until the wait.
  addCurrent(bucket.packedBytes);
  bool copiedOut = unpacks(members);
  addRange(0, bucket.finishStep + !copiedOut, bucket.packedBytes);
  forEachStorage(members, false, [&](TaskId task, StorageId storage) {
    finishUseAt(storage, problem.stepOfTask[task]);
    finishUseAt(storage, problem.stepOfWait[task]);
  });
  // The start: one storage for all results.
  addCurrent(bucket.resultBytes);
  if (!copiedOut) {
    shareResults(id, members);
    return;
  }
  addRange(0, bucket.finishStep + 1, bucket.resultBytes);
  forEachNewResult(members, [&](TaskId task, StorageId storage) {
    moveBirth(storage, bucket.finishStep);
    finishUseAt(storage, problem.stepOfTask[task]);
  });
}

void MemoryTracker::shareResults(uint32_t id, std::span<const TaskId> members) {
  Bucket &bucket = buckets[id];
  auto endOf = [&](StorageId storage) -> StepId {
    return problem.storagePinned[storage] ? problem.numSteps - 1
                                          : problem.stepsOfStorage[storage][lastUse[storage]];
  };
  forEachStorage(members, true, [&](TaskId, StorageId storage) {
    bucket.resultEnd = std::max(bucket.resultEnd, endOf(storage));
    ++bucket.resultsInUse;
  });
  forEachStorage(members, true, [&](TaskId task, StorageId storage) {
    int64_t bytes = problem.storageBytes[storage];
    addRange(0, birth[storage], bytes);
    addRange(endOf(storage) + 1, bucket.resultEnd + 1, bytes);
    born[storage] = true;
    journal.push_back({Change::Born, storage, 0, 0});
    resultOf[storage] = id;
    finishUseAt(storage, problem.stepOfTask[task]);
  });
}

void MemoryTracker::applyFinish(uint32_t id, std::span<const TaskId> members) {
  if (flat) {
    for (TaskId task : members)
      applyStep(problem.stepOfWait[task]);
    return;
  }
  const Bucket &bucket = buckets[id];
  for (TaskId task : members)
    markExecuted(problem.stepOfWait[task]);
  bool copiedOut = unpacks(members);
  addCurrent(-bucket.packedBytes);
  addRange(0, bucket.finishStep + !copiedOut, -bucket.packedBytes);
  if (copiedOut) {
    forEachNewResult(members, [&](TaskId, StorageId storage) { allocate(storage); });
    addCurrent(-bucket.resultBytes);
    addRange(0, bucket.finishStep + 1, -bucket.resultBytes);
  }
  forEachStorage(members, true, [&](TaskId task, StorageId storage) {
    finishUseAt(storage, problem.stepOfWait[task]);
  });
}
