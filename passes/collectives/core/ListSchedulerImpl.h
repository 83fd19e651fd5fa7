// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The list scheduler's state, for its own source files only.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULERIMPL_H
#define SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULERIMPL_H

#include "passes/collectives/core/CommunicationStream.h"
#include "passes/collectives/core/ListScheduler.h"
#include "passes/collectives/core/MemoryTracker.h"
#include "passes/collectives/core/ReadyKernels.h"

#include <limits>
#include <queue>

namespace shardc::collectives {

class ListScheduler {
public:
  ListScheduler(const ScheduleInput &input, const SchedulePolicy &policy);
  ScheduleResult run();

private:
  enum class State : uint8_t { Pending, Done, Waited };
  struct Bucket {
    std::vector<TaskId> members;
    CollectiveKind kind = CollectiveKind::AllGather;
    double endUs = 0, unpackUs = 0;
    /// Its unpacking is a kernel to be scheduled; until then nobody can use the results.
    bool toUnpack = false;
  };
  using Timed = std::pair<double, TaskId>;
  using Timeline = std::priority_queue<Timed, std::vector<Timed>, std::greater<>>;

  // Tasks from numTasks on are the unpacking of bucket task - numTasks.
  bool isUnpack(TaskId task) const { return task >= problem.numTasks(); }
  BucketId bucketOfUnpack(TaskId task) const { return task - problem.numTasks(); }
  bool waited(TaskId task) const { return state[task] == State::Waited; }
  double latestStart(TaskId task) const { return policy.reference->latestStartUs[task]; }
  double needed(TaskId task) const { return policy.reference->neededUs[task]; }
  CommunicationStream &streamOf(TaskId task) {
    return streams[problem.graph.groupOf(problem.nodeOf[task])];
  }
  void emit(PlanItem::Kind kind, uint32_t id) { result.plan.items.push_back({kind, id}); }

  void step();
  double progress();
  void becomeReady(TaskId task);
  void makeAvailable(TaskId task);
  void admit();
  void addReady(TaskId task, CommunicationStream &stream);
  void release(TaskId task, bool complete, double atUs);

  TaskId chooseKernel(bool &oldestFirst);
  bool runKernel(TaskId task);
  void finishKernel(TaskId task);
  void runBaseStep();
  uint64_t bytesToPack();
  bool isLate(const CommunicationStream &stream);
  double stallEndUs(TaskId task, StepId step) const;

  bool startOne(double horizonUs, bool idle);
  bool startWith(TaskId head);
  CloseReason chooseMembers(const CommunicationStream &stream, std::vector<TaskId> &members);
  bool isCheap(TaskId task) const;
  void startAlone(TaskId task, AloneReason reason);
  void startBucket(std::vector<TaskId> members, CloseReason reason);
  void leaveQueue(TaskId task);

  void waitForOperands(TaskId task);
  void waitFor(TaskId task);
  void finishBucket(BucketId id);
  bool waitForEnded(bool pressed);

  const Problem &problem;
  const ScheduleInput &input;
  const SchedulePolicy &policy;
  MemoryTracker memory;
  ReadyKernels kernels;
  std::vector<CommunicationStream> streams;
  /// Streams with ready collectives, by when they are free.
  std::set<std::pair<double, GroupId>> active;
  // By task.
  std::vector<uint32_t> missing;
  std::vector<double> readyUs, endUs;
  std::vector<State> state;
  std::vector<bool> early; // ready, but not admitted yet
  std::vector<BucketId> bucketOf;
  std::vector<TaskId> taskOfStep;
  // By key.
  std::vector<uint32_t> leftOfKey, bucketsOfKey;
  std::vector<Bucket> buckets;
  Timeline future;   // what becomes ready when
  Timeline inFlight; // collectives and buckets without unpacking, by when they may be waited for
  // Into reference->kernels, and how long those before it take.
  size_t cursor = 0;
  double cursorUs = 0;
  /// How long the kernels that have run took.
  double executedUs = 0;
  size_t left = 0;
  /// Kernels before this one in the program may run.
  TaskId admitted = 0;
  double now = 0;
  /// Bytes that kernels must leave free.
  uint64_t reservedBytes = 0;
  ScheduleResult result;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_LISTSCHEDULERIMPL_H
