// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/FormBuckets.h"

#include "passes/collectives/core/MemoryTracker.h"

#include <algorithm>
#include <utility>

using namespace shardc;
using namespace shardc::collectives;

namespace {

/// How many kernels may be moved up to let one more gather join a bucket.
constexpr size_t kernelsToMove = 16;
/// How many gathers that cannot join are passed over.
constexpr int gathersToSkip = 64;
/// How far to look for why a bucket was closed.
constexpr size_t tasksToSearch = 2000;
/// An automatic cap is where a collective takes this many times its latency.
constexpr double latenciesAtCap = 5;

class BucketFormer {
public:
  BucketFormer(const Problem &problem, const cost::CostModel &model, const BucketKeys &keys,
               const FormOptions &options);
  FormResult run();

private:
  enum class State : uint8_t { Pending, Open, Started, Waited };
  struct Key {
    std::vector<TaskId> open;
    uint64_t openBytes = 0;
    /// What it takes to pack them.
    uint64_t packBytes = 0;
    /// Collectives that have not been started.
    size_t left = 0;
    uint64_t autoCap = UINT64_MAX;
    uint32_t numClosed = 0;
    /// In order of first use; the first that may still be pending.
    std::vector<TaskId> byFirstUse;
    size_t cursor = 0;
    /// The last bucket, and whether it was closed because something needed it.
    BucketId last = none;
    bool lastWasNeeded = false;
  };

  bool isGather(uint32_t key) const {
    return problem.graph.kindOf(problem.nodeOf[keys.tasksOf(key).front()]) ==
           CollectiveKind::AllGather;
  }
  uint64_t bytesOf(TaskId task) const { return problem.graph.fullBytes(problem.nodeOf[task]); }
  uint64_t capOf(const Key &key) const {
    return std::min(key.autoCap, options.buckets.caps.bytesAt(key.numClosed));
  }
  void emit(PlanItem::Kind kind, uint32_t id) { result.plan.items.push_back({kind, id}); }

  uint64_t automaticCap(uint32_t key) const;
  void meetDependences(TaskId task);
  void runKernel(TaskId task);
  void visitCollective(TaskId task);
  bool giveWay(StepId own);
  void runStep(StepId step);
  uint64_t bytesToPack() const;
  void join(Key &key, TaskId task);
  void leave(Key &key, TaskId task);
  void ensureStarted(TaskId task);
  void ensureComplete(TaskId task);
  void complete(TaskId task);
  void completed(BucketId bucket);
  void close(uint32_t id, CloseReason reason);
  CloseReason addLaterGathers(Key &key, CloseReason reason);
  bool moveUp(TaskId task);
  void startOpen(uint32_t id, CloseReason reason);
  void startedBucket(uint32_t id, std::vector<TaskId> tasks, CloseReason reason);
  void startAlone(TaskId task, AloneReason reason);
  void startedAlone(TaskId task, AloneReason reason);
  void explainLast(Key &key, TaskId task);
  bool reaches(TaskId from, BucketId bucket, bool throughBuckets);

  const Problem &problem;
  const cost::CostModel &model;
  const BucketKeys &keys;
  const FormOptions &options;
  MemoryTracker memory;
  std::vector<State> state; // of kernels only Pending and Waited
  std::vector<BucketId> bucketOf;
  std::vector<Key> byKey;
  std::vector<std::vector<TaskId>> members;
  std::vector<TaskId> taskOfStep;
  /// The task of the program that is being visited.
  TaskId position = 0;
  std::vector<TaskId> stack, visited;
  std::vector<bool> mark;
  FormResult result;
};

BucketFormer::BucketFormer(const Problem &problem, const cost::CostModel &model,
                           const BucketKeys &keys, const FormOptions &options)
    : problem(problem), model(model), keys(keys), options(options),
      memory(problem, options.memoryLimit, options.flat), state(problem.numTasks()),
      bucketOf(problem.numTasks(), none), byKey(keys.numKeys()), mark(problem.numTasks()) {
  result.alone.assign(problem.numTasks(), AloneReason::NoPartner);
  std::vector<TaskId> firstUse(problem.numTasks(), none);
  taskOfStep.resize(problem.numSteps);
  for (TaskId task = 0; task != problem.numTasks(); ++task) {
    taskOfStep[problem.stepOfTask[task]] = task;
    if (problem.stepOfWait[task] != none)
      taskOfStep[problem.stepOfWait[task]] = task;
    for (const Dependence &d : problem.after[task])
      firstUse[task] = std::min(firstUse[task], d.task);
  }
  for (uint32_t id = 0; id != keys.numKeys(); ++id) {
    Key &key = byKey[id];
    key.left = keys.tasksOf(id).size();
    if (options.buckets.caps.isAuto())
      key.autoCap = automaticCap(id);
    if ((isGather(id) ? options.gathers : options.reduces) != BucketOrder::FirstUse)
      continue;
    key.byFirstUse.assign(keys.tasksOf(id).begin(), keys.tasksOf(id).end());
    std::sort(key.byFirstUse.begin(), key.byFirstUse.end(), [&](TaskId a, TaskId b) {
      return std::pair(firstUse[a], a) < std::pair(firstUse[b], b);
    });
  }
}

uint64_t BucketFormer::automaticCap(uint32_t key) const {
  NodeId node = problem.nodeOf[keys.tasksOf(key).front()];
  CollectiveKind kind = problem.graph.kindOf(node);
  cost::Group group = problem.graph.group(problem.graph.groupOf(node)).shape();
  double target = latenciesAtCap * model.latencyUs(kind, group);
  uint64_t low = 0, high = uint64_t(1) << 40;
  while (high - low > 1024) {
    uint64_t middle = low + (high - low) / 2;
    (model.collectiveUs(kind, group, middle) < target ? low : high) = middle;
  }
  return high;
}

FormResult BucketFormer::run() {
  for (position = 0; position != problem.numTasks(); ++position)
    if (state[position] == State::Pending)
      problem.isCollective(position) ? visitCollective(position) : runKernel(position);
  for (uint32_t id = 0; id != byKey.size(); ++id)
    close(id, CloseReason::Complete);
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (problem.isCollective(task) && problem.waitOf[task] != none)
      ensureComplete(task);
  return std::move(result);
}

void BucketFormer::meetDependences(TaskId task) {
  for (const Dependence &d : problem.before[task])
    if (problem.isCollective(d.task))
      d.complete ? ensureComplete(d.task) : ensureStarted(d.task);
}

void BucketFormer::runKernel(TaskId task) {
  meetDependences(task);
  runStep(problem.stepOfTask[task]);
  if (problem.isKernel(task))
    emit(PlanItem::Kind::Op, problem.nodeOf[task]);
  state[task] = State::Waited;
}

/// Something does not fit: runs the first step that has been put off, which always does. False if
/// that is the caller's own step.
bool BucketFormer::giveWay(StepId own) {
  StepId step = memory.firstRemaining();
  if (step == own)
    return false;
  TaskId task = taskOfStep[step];
  if (step == problem.stepOfWait[task]) {
    complete(task);
    return true;
  }
  // A start that waits in an open bucket: all of it, or it alone.
  uint32_t id = keys.keyOf(task);
  std::vector<TaskId> &open = byKey[id].open;
  if (open.size() > 1 && memory.tryStartBucket(open)) {
    for (TaskId member : open)
      leave(byKey[id], member);
    startedBucket(id, std::exchange(open, {}), CloseReason::Memory);
    return true;
  }
  open.erase(std::find(open.begin(), open.end(), task));
  leave(byKey[id], task);
  memory.runStep(step);
  startedAlone(task, AloneReason::Memory);
  return true;
}

void BucketFormer::visitCollective(TaskId task) {
  meetDependences(task);
  uint32_t id = keys.keyOf(task);
  if (id == none) {
    startAlone(task, keys.reasonOf(task));
    return;
  }
  Key &key = byKey[id];
  explainLast(key, task);
  uint64_t bytes = bytesOf(task);
  if (!key.open.empty() && (bytes > capOf(key) || bytes > capOf(key) - key.openBytes))
    close(id, CloseReason::Cap);
  if (bytes > capOf(key)) {
    startAlone(task, AloneReason::AboveCap);
    return;
  }
  join(key, task);
}

void BucketFormer::join(Key &key, TaskId task) {
  key.open.push_back(task);
  key.openBytes += bytesOf(task);
  key.packBytes += problem.graph.operandBytes(problem.nodeOf[task]);
  state[task] = State::Open;
}

void BucketFormer::leave(Key &key, TaskId task) {
  key.openBytes -= bytesOf(task);
  key.packBytes -= problem.graph.operandBytes(problem.nodeOf[task]);
}

void BucketFormer::ensureStarted(TaskId task) {
  if (state[task] != State::Open)
    return;
  uint32_t id = keys.keyOf(task);
  close(id, CloseReason::Dependence);
}

void BucketFormer::ensureComplete(TaskId task) {
  ensureStarted(task);
  BucketId bucket = bucketOf[task];
  if (bucket == none || options.flat) {
    if (state[task] != State::Waited)
      complete(task);
    return;
  }
  StepId own = problem.numSteps;
  for (TaskId member : members[bucket])
    own = std::min(own, problem.stepOfWait[member]);
  while (state[task] != State::Waited)
    if (memory.tryFinishBucket(bucket, members[bucket]))
      completed(bucket);
    else if (!giveWay(own))
      complete(task);
}

/// Waits, whatever it takes.
void BucketFormer::complete(TaskId task) {
  if (BucketId bucket = bucketOf[task]; bucket != none) {
    memory.finishBucket(bucket, members[bucket]);
    completed(bucket);
    return;
  }
  memory.runStep(problem.stepOfWait[task]);
  emit(PlanItem::Kind::Op, problem.waitOf[task]);
  state[task] = State::Waited;
}

void BucketFormer::completed(BucketId bucket) {
  emit(PlanItem::Kind::Wait, bucket);
  if (needsUnpack(problem.graph.kindOf(problem.nodeOf[members[bucket].front()])))
    emit(PlanItem::Kind::Unpack, bucket);
  for (TaskId member : members[bucket])
    state[member] = State::Waited;
}

/// Starts what is open of a key, with later gathers where that is wanted.
void BucketFormer::close(uint32_t id, CloseReason reason) {
  Key &key = byKey[id];
  if (key.open.empty())
    return;
  // One bucket of a key in flight is enough: its buffers are not needed any longer.
  if (BucketId last = key.last; last != none && state[members[last].front()] != State::Waited &&
                                (reason == CloseReason::Cap || reason == CloseReason::Complete) &&
                                memory.tryFinishBucket(last, members[last]))
    completed(last);
  if (!key.byFirstUse.empty() && reason != CloseReason::Memory)
    reason = addLaterGathers(key, reason);
  key.lastWasNeeded = reason == CloseReason::Dependence;
  startOpen(id, reason);
}

CloseReason BucketFormer::addLaterGathers(Key &key, CloseReason reason) {
  while (key.cursor != key.byFirstUse.size() && state[key.byFirstUse[key.cursor]] != State::Pending)
    ++key.cursor;
  int skipped = 0;
  bool any = false;
  for (size_t i = key.cursor; i != key.byFirstUse.size() && skipped != gathersToSkip; ++i) {
    TaskId task = key.byFirstUse[i];
    if (state[task] != State::Pending)
      continue;
    any = true;
    if (bytesOf(task) > capOf(key)) // stands alone
      continue;
    if (bytesOf(task) > capOf(key) - key.openBytes)
      return CloseReason::Cap;
    if (!moveUp(task)) {
      ++skipped;
      continue;
    }
    join(key, task);
  }
  return any ? reason : CloseReason::Complete;
}

/// Runs the kernels that a collective's operands come from, if they are few and wait for nothing.
bool BucketFormer::moveUp(TaskId task) {
  std::vector<TaskId> kernels;
  stack.assign(1, task);
  bool possible = true;
  while (possible && !stack.empty()) {
    TaskId at = stack.back();
    stack.pop_back();
    for (const Dependence &d : problem.before[at]) {
      if (problem.isCollective(d.task)) {
        possible =
            state[d.task] == State::Waited || (!d.complete && state[d.task] == State::Started);
      } else if (state[d.task] == State::Pending && !mark[d.task]) {
        mark[d.task] = true;
        kernels.push_back(d.task);
        stack.push_back(d.task);
        possible = kernels.size() <= kernelsToMove;
      }
      if (!possible)
        break;
    }
  }
  for (TaskId kernel : kernels)
    mark[kernel] = false;
  std::sort(kernels.begin(), kernels.end());
  for (size_t i = 0; possible && i != kernels.size(); ++i) {
    possible = memory.tryStep(problem.stepOfTask[kernels[i]]);
    if (!possible)
      break;
    if (problem.isKernel(kernels[i]))
      emit(PlanItem::Kind::Op, problem.nodeOf[kernels[i]]);
    state[kernels[i]] = State::Waited;
  }
  return possible;
}

/// Starts as many of the open collectives as fit at once, then the others.
void BucketFormer::startOpen(uint32_t id, CloseReason reason) {
  std::vector<TaskId> &open = byKey[id].open;
  while (!open.empty()) {
    size_t count = open.size();
    while (count > 1 && !memory.tryStartBucket(std::span(open).first(count)))
      count /= 2;
    bool all = count == open.size();
    std::vector<TaskId> first(open.begin(), open.begin() + count);
    open.erase(open.begin(), open.begin() + count);
    for (TaskId task : first)
      leave(byKey[id], task);
    if (count > 1) {
      CloseReason why = byKey[id].left == count ? CloseReason::Complete : reason;
      startedBucket(id, std::move(first), all ? why : CloseReason::Memory);
      continue;
    }
    if (first.front() > position && !memory.tryStep(problem.stepOfTask[first.front()])) {
      // It was moved up for nothing: its turn will come.
      state[first.front()] = State::Pending;
      continue;
    }
    AloneReason alone = AloneReason::Dependence;
    if (reason == CloseReason::Memory || !all)
      alone = AloneReason::Memory;
    else if (keys.tasksOf(id).size() == 1)
      alone = AloneReason::NoPartner;
    else if (reason == CloseReason::Cap)
      alone = AloneReason::NoRoom;
    // This may start others that are open, to make room.
    if (!memory.hasRun(problem.stepOfTask[first.front()]))
      runStep(problem.stepOfTask[first.front()]);
    startedAlone(first.front(), alone);
    ++byKey[id].numClosed; // a bucket of one
  }
}

void BucketFormer::startedBucket(uint32_t id, std::vector<TaskId> tasks, CloseReason reason) {
  Key &key = byKey[id];
  BucketId bucket = members.size();
  std::vector<NodeId> &nodes = result.plan.buckets.emplace_back();
  for (TaskId member : tasks) {
    nodes.push_back(problem.nodeOf[member]);
    bucketOf[member] = bucket;
    state[member] = State::Started;
  }
  members.push_back(std::move(tasks));
  emit(PlanItem::Kind::Pack, bucket);
  emit(PlanItem::Kind::Start, bucket);
  result.closed.push_back(reason);
  result.capBytes.push_back(capOf(key));
  ++key.numClosed;
  key.left -= members.back().size();
  key.last = bucket;
}

void BucketFormer::startAlone(TaskId task, AloneReason reason) {
  runStep(problem.stepOfTask[task]);
  startedAlone(task, reason);
}

void BucketFormer::startedAlone(TaskId task, AloneReason reason) {
  emit(PlanItem::Kind::Op, problem.nodeOf[task]);
  state[task] = State::Started;
  result.alone[task] = reason;
  if (uint32_t id = keys.keyOf(task); id != none)
    --byKey[id].left;
}

void BucketFormer::runStep(StepId step) {
  while (!memory.hasRun(step) && !memory.tryStep(step, bytesToPack()))
    if (!giveWay(step))
      memory.runStep(step);
}

/// What has to stay free for the largest open bucket.
uint64_t BucketFormer::bytesToPack() const {
  uint64_t bytes = 0;
  if (!options.flat)
    for (const Key &key : byKey)
      if (key.open.size() > 1)
        bytes = std::max(bytes, key.packBytes);
  return bytes;
}

/// A collective comes too late for a bucket that something needed. If it depends on a member only
/// because buckets were formed, a cycle was avoided.
void BucketFormer::explainLast(Key &key, TaskId task) {
  if (!key.lastWasNeeded || key.last == none)
    return;
  key.lastWasNeeded = false;
  if (!reaches(task, key.last, false) && reaches(task, key.last, true))
    result.closed[key.last] = CloseReason::Cycle;
}

/// Whether a task depends on a member of a bucket, if all members of a bucket depend on whatever
/// one of them depends on, or not. Gives up (false) after a number of tasks.
bool BucketFormer::reaches(TaskId from, BucketId bucket, bool throughBuckets) {
  bool found = false;
  visited.clear();
  stack.assign(1, from);
  // Dependences lead back in the program, and only buckets forth.
  TaskId first = throughBuckets ? 0 : *std::ranges::min_element(members[bucket]);
  auto push = [&](TaskId task) {
    if (mark[task] || task < first)
      return;
    mark[task] = true;
    visited.push_back(task);
    stack.push_back(task);
  };
  while (!found && !stack.empty() && visited.size() < tasksToSearch) {
    TaskId at = stack.back();
    stack.pop_back();
    if (bucketOf[at] != none && throughBuckets)
      for (TaskId member : members[bucketOf[at]])
        push(member);
    for (const Dependence &d : problem.before[at]) {
      found |= bucketOf[d.task] == bucket;
      push(d.task);
    }
  }
  for (TaskId task : visited)
    mark[task] = false;
  return found;
}

} // namespace

FormResult shardc::collectives::formBuckets(const Problem &problem, const cost::CostModel &model,
                                            const BucketKeys &keys, const FormOptions &options) {
  return BucketFormer(problem, model, keys, options).run();
}
