// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/ListSchedulerImpl.h"

using namespace shardc;
using namespace shardc::collectives;

/// How many kernels that do not fit are passed over before the base order decides.
static constexpr int kernelsToTry = 4;

ProgramTimes::ProgramTimes(const Problem &problem, const TaskTimes &times) {
  double at = 0;
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    startUs.push_back(at);
    if (!problem.isCollective(task))
      at += times.us[task];
  }
  neededUs.assign(problem.numTasks(), at);
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    for (const Dependence &d : problem.after[task])
      neededUs[task] = std::min(neededUs[task], startUs[d.task]);
}

ListScheduler::ListScheduler(const ScheduleInput &input, const SchedulePolicy &policy)
    : problem(input.problem), input(input), policy(policy),
      memory(problem, input.memoryLimit, input.flat), kernels(problem.numTasks()),
      missing(problem.numTasks()), readyUs(problem.numTasks()), endUs(problem.numTasks()),
      state(problem.numTasks()), early(problem.numTasks()), bucketOf(problem.numTasks(), none),
      taskOfStep(problem.numSteps, none), bucketsOfKey(input.keys.numKeys()),
      left(problem.numTasks()) {
  std::vector<std::vector<TaskId>> ofGroup(problem.graph.numGroups());
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    missing[task] = problem.before[task].size();
    taskOfStep[problem.stepOfTask[task]] = task;
    if (problem.stepOfWait[task] != none)
      taskOfStep[problem.stepOfWait[task]] = task;
    if (problem.isCollective(task))
      ofGroup[problem.graph.groupOf(problem.nodeOf[task])].push_back(task);
  }
  for (std::vector<TaskId> &tasks : ofGroup)
    streams.emplace_back(std::move(tasks), input.times.us, policy.reference->neededUs);
  for (uint32_t key = 0; key != input.keys.numKeys(); ++key)
    leftOfKey.push_back(input.keys.tasksOf(key).size());
  result.alone.assign(problem.numTasks(), AloneReason::Cost);
  result.plan.items.reserve(problem.numSteps);
}

ScheduleResult ListScheduler::run() {
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (missing[task] == 0)
      becomeReady(task);
  while (left != 0)
    step();
  for (; !inFlight.empty(); inFlight.pop())
    if (TaskId task = inFlight.top().second; !waited(task))
      waitFor(task);
  result.stepUs = now;
  for (const CommunicationStream &stream : streams)
    result.stepUs = std::max(result.stepUs, stream.freeUs);
  result.peakBytes = memory.peakBytes();
  return std::move(result);
}

void ListScheduler::step() {
  for (; !future.empty() && future.top().first <= now; future.pop())
    makeAvailable(future.top().second);
  waitForEnded(false);
  admit();
  bool oldestFirst = false;
  TaskId next = chooseKernel(oldestFirst);
  // A stream that would run dry while the next kernel runs gets its next collective first.
  if (startOne(next == none ? now : now + kernels.durationUs(next), false))
    return;
  if (next == none) {
    if (startOne(future.empty() ? infinity : future.top().first, true))
      return;
    if (!future.empty()) {
      now = future.top().first; // the compute stream stalls
      return;
    }
    runBaseStep();
    return;
  }
  reservedBytes = bytesToPack();
  auto run = [&](TaskId task) { return runKernel(task); };
  if (kernels.offer(oldestFirst, kernelsToTry, run) ||
      kernels.offer(!oldestFirst, kernelsToTry, run))
    return;
  if (waitForEnded(true))
    return;
  if (reservedBytes != 0 && !inFlight.empty() && inFlight.top().first > now)
    now = inFlight.top().first; // then the bucket can start
  else
    runBaseStep();
}

//===----------------------------------------------------------------------===//
// Readiness
//===----------------------------------------------------------------------===//

/// How far the program has come on the axis of the reference: where the reference has run as much
/// as has run by now. (Some kernels run early and some late.)
double ListScheduler::progress() {
  const std::vector<TaskId> &order = policy.reference->kernels;
  while (cursor != order.size() && cursorUs + input.times.us[order[cursor]] <= executedUs)
    cursorUs += input.times.us[order[cursor++]];
  return cursor == order.size() ? policy.reference->makespanUs : latestStart(order[cursor]);
}

void ListScheduler::becomeReady(TaskId task) {
  if (readyUs[task] > now)
    future.push({readyUs[task], task});
  else
    makeAvailable(task);
}

void ListScheduler::makeAvailable(TaskId task) {
  if (isUnpack(task)) {
    const Bucket &bucket = buckets[bucketOfUnpack(task)];
    if (!bucket.toUnpack)
      return;
    // Urgent and old as the first that needs it.
    double latest = infinity;
    TaskId age = problem.numTasks() - 1;
    for (TaskId member : bucket.members) {
      latest = std::min(latest, needed(member));
      for (const Dependence &d : problem.after[member])
        age = std::min(age, d.task);
    }
    kernels.add(task, latest, age, bucket.unpackUs);
    return;
  }
  if (state[task] != State::Pending)
    return; // the base order was faster
  if (problem.isCollective(task))
    addReady(task, streamOf(task));
  else if (task >= admitted)
    early[task] = true;
  else
    kernels.add(task, latestStart(task), task, input.times.us[task]);
}

/// Lets kernels in whose turn is near enough.
void ListScheduler::admit() {
  double until = executedUs + policy.earlyUs;
  for (; admitted != problem.numTasks() && input.program.startUs[admitted] <= until; ++admitted)
    if (early[admitted])
      kernels.add(admitted, latestStart(admitted), admitted, input.times.us[admitted]);
}

void ListScheduler::addReady(TaskId task, CommunicationStream &stream) {
  NodeId node = problem.nodeOf[task];
  uint64_t freed = 0, taken = 0;
  for (ValueId result : problem.graph.results(node))
    taken += problem.graph.isInPlace(result) ? 0 : problem.graph.bytesOf(result);
  for (ValueId value : problem.graph.operands(node))
    if (StorageId storage = problem.storageOf[value];
        storage != none && !problem.storagePinned[storage])
      freed += problem.storageBytes[storage];
  stream.addReady(task, latestStart(task), freed >= taken, problem.graph.operandBytes(node));
  active.insert({stream.freeUs, problem.graph.groupOf(problem.nodeOf[task])});
}

void ListScheduler::release(TaskId task, bool complete, double atUs) {
  for (const Dependence &d : problem.after[task]) {
    if (d.complete != complete)
      continue;
    readyUs[d.task] = std::max(readyUs[d.task], atUs);
    if (--missing[d.task] == 0)
      becomeReady(d.task);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TaskId ListScheduler::chooseKernel(bool &oldestFirst) {
  TaskId urgent = kernels.mostUrgent();
  if (urgent == none)
    return none;
  oldestFirst = kernels.olderUs(urgent) > policy.deferUs;
  return oldestFirst ? kernels.oldest() : urgent;
}

bool ListScheduler::runKernel(TaskId task) {
  if (isUnpack(task)) {
    BucketId id = bucketOfUnpack(task);
    if (!memory.tryFinishBucket(id, buckets[id].members)) {
      ++result.memoryRefusals;
      return false;
    }
    finishBucket(id);
    return true;
  }
  waitForOperands(task);
  StepId step = problem.stepOfTask[task];
  if (!memory.tryStep(step, memory.growth(step) > 0 ? reservedBytes : 0)) {
    ++result.memoryRefusals;
    return false;
  }
  finishKernel(task);
  return true;
}

void ListScheduler::finishKernel(TaskId task) {
  if (problem.isKernel(task))
    emit(PlanItem::Kind::Op, problem.nodeOf[task]);
  now += input.times.us[task];
  executedUs += input.times.us[task];
  state[task] = State::Done;
  early[task] = false;
  if (kernels.contains(task))
    kernels.remove(task);
  --left;
  release(task, false, 0);
}

/// What it takes to pack the collectives that wait on late streams. A kernel that takes this memory
/// away would make each of them start alone.
uint64_t ListScheduler::bytesToPack() {
  uint64_t bytes = 0;
  if (policy.merge && !input.flat)
    for (auto [freeUs, group] : active)
      if (streams[group].releasing().size() > 1 && isLate(streams[group]))
        bytes += streams[group].releasingBytes();
  return bytes;
}

bool ListScheduler::isLate(const CommunicationStream &stream) {
  return stream.latenessUs(std::max(0.0, stream.freeUs - now), progress()) > 0;
}

/// When a step of the base order can run without a stall.
double ListScheduler::stallEndUs(TaskId task, StepId step) const {
  if (problem.stepOfWait[task] == step)
    return endUs[task];
  // A collective that only queues up on its stream can still be merged with others.
  double end =
      problem.isCollective(task) ? streams[problem.graph.groupOf(problem.nodeOf[task])].freeUs : 0;
  for (const Dependence &d : problem.before[task])
    if (d.complete && !waited(d.task))
      end = std::max(end, endUs[d.task]);
  return end;
}

/// Nothing that is wanted fits: the next step of the base order always does.
void ListScheduler::runBaseStep() {
  StepId step = memory.firstRemaining();
  TaskId task = taskOfStep[step];
  double readyUs = stallEndUs(task, step);
  if (readyUs > now) {
    // Something else may fit after the next event.
    for (const Timeline *events : {&future, &inFlight})
      if (!events->empty() && events->top().first > now)
        readyUs = std::min(readyUs, events->top().first);
    now = readyUs;
    return;
  }
  if (problem.stepOfWait[task] == step) {
    waitFor(task);
    return;
  }
  waitForOperands(task);
  if (problem.isCollective(task) && startWith(task))
    return;
  memory.runStep(step);
  if (problem.isCollective(task))
    startAlone(task, AloneReason::Memory);
  else
    finishKernel(task);
}

ScheduleResult shardc::collectives::listSchedule(const ScheduleInput &input,
                                                 const SchedulePolicy &policy) {
  return ListScheduler(input, policy).run();
}
