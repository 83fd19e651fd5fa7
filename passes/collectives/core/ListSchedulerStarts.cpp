// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the list scheduler that starts collectives, merges them and waits for them.

#include "passes/collectives/core/ListSchedulerImpl.h"

using namespace shardc;
using namespace shardc::collectives;

/// How many collectives that cannot join a bucket are passed over.
static constexpr int candidatesToSkip = 256;

//===----------------------------------------------------------------------===//
// Starts
//===----------------------------------------------------------------------===//

/// Starts one collective or bucket on a stream that is free by then. If the compute stream has
/// nothing to do, also those that only queue up, which hides their launch, unless they could be
/// merged with others later. False if there is none or none fits.
bool ListScheduler::startOne(double horizonUs, bool idle) {
  for (auto [freeUs, group] : active) {
    if (freeUs > horizonUs && !idle)
      return false;
    CommunicationStream &stream = streams[group];
    if (memory.currentBytes() >= stream.refusedBytes)
      continue;
    TaskId head = stream.ready().begin()->second;
    double neededInUs = input.program.neededUs[head] - executedUs;
    bool soon = neededInUs <= policy.prefetchUs;
    if (neededInUs > policy.urgentUs && !stream.releasing().empty())
      head = *stream.releasing().begin();
    else if (!idle && !soon)
      continue;
    if (freeUs > horizonUs && (!soon || (policy.merge && isLate(stream))))
      continue;
    if (startWith(head))
      return true;
    stream.refusedBytes = memory.currentBytes();
    ++result.memoryRefusals;
  }
  return false;
}

/// Starts a collective, alone or with others.
bool ListScheduler::startWith(TaskId head) {
  std::vector<TaskId> members = {head};
  waitForOperands(head);
  CloseReason reason = chooseMembers(streamOf(head), members);
  for (; members.size() > 1; members.resize(members.size() / 2), reason = CloseReason::Memory) {
    for (TaskId member : members)
      waitForOperands(member);
    if (memory.tryStartBucket(members)) {
      startBucket(std::move(members), reason);
      return true;
    }
    ++result.memoryRefusals;
  }
  if (!memory.tryStep(problem.stepOfTask[head]))
    return false;
  startAlone(head, reason == CloseReason::Memory ? AloneReason::Memory : result.alone[head]);
  return true;
}

/// Packing it costs little enough for the latency that it saves.
bool ListScheduler::isCheap(TaskId task) const {
  if (input.flat)
    return true;
  double us = packUs(problem, task, input.model) + unpackUs(problem, task, input.model);
  return us <= policy.packShare * input.times.latencyUs[task];
}

/// Adds to a collective that is about to start others that should start with it: only while the
/// stream would otherwise be late with something, and only as long as the first member is not held
/// up for more than the latency that is saved.
CloseReason ListScheduler::chooseMembers(const CommunicationStream &stream,
                                         std::vector<TaskId> &members) {
  TaskId head = members.front();
  AloneReason &alone = result.alone[head];
  uint32_t key = input.keys.keyOf(head);
  if (key == none || input.keys.tasksOf(key).size() == 1) {
    alone = key == none ? input.keys.reasonOf(head) : AloneReason::NoPartner;
    return CloseReason::Complete;
  }
  const Graph &graph = problem.graph;
  uint64_t cap = input.buckets.caps.bytesAt(bucketsOfKey[key]);
  uint64_t bytes = graph.fullBytes(problem.nodeOf[head]);
  if (bytes > cap) {
    alone = AloneReason::AboveCap;
    return CloseReason::Cap;
  }
  alone = AloneReason::Cost;
  if (!policy.merge || !isCheap(head) || !isLate(stream))
    return CloseReason::Cost;

  double latency = input.times.latencyUs[head];
  double spare =
      needed(head) - progress() - std::max(0.0, stream.freeUs - now) - input.times.us[head];
  double allowed = std::max(spare, policy.patience * latency);
  int skipped = 0;
  for (auto [latest, task] : stream.ready()) {
    if (task == head)
      continue;
    if (input.keys.keyOf(task) != key || !isCheap(task)) {
      if (++skipped == candidatesToSkip)
        return CloseReason::Cost;
      continue;
    }
    uint64_t more = graph.fullBytes(problem.nodeOf[task]);
    if (more > cap - bytes) {
      alone = AloneReason::NoRoom;
      return CloseReason::Cap;
    }
    allowed -= input.times.us[task] - latency;
    if (allowed < 0)
      return CloseReason::Cost;
    bytes += more;
    members.push_back(task);
  }
  if (leftOfKey[key] == members.size())
    return CloseReason::Complete;
  alone = AloneReason::Dependence;
  return CloseReason::Dependence;
}

void ListScheduler::leaveQueue(TaskId task) {
  CommunicationStream &stream = streamOf(task);
  stream.remove(task, latestStart(task), problem.graph.operandBytes(problem.nodeOf[task]));
  if (uint32_t key = input.keys.keyOf(task); key != none)
    --leftOfKey[key];
  state[task] = State::Done;
  --left;
}

void ListScheduler::startAlone(TaskId task, AloneReason reason) {
  CommunicationStream &stream = streamOf(task);
  GroupId group = problem.graph.groupOf(problem.nodeOf[task]);
  result.alone[task] = reason;
  leaveQueue(task);
  active.erase({stream.freeUs, group});
  emit(PlanItem::Kind::Op, problem.nodeOf[task]);
  now += input.model.launchUs();
  stream.freeUs = endUs[task] = std::max(now, stream.freeUs) + input.times.us[task];
  if (!stream.ready().empty())
    active.insert({stream.freeUs, group});
  // It is waited for as late as something needs it, but to free its operands no later than when it
  // has been complete for as long as it took: an estimate may be wrong by as much.
  if (problem.waitOf[task] != none)
    inFlight.push({endUs[task], task});
  release(task, false, 0);
  release(task, true, endUs[task]);
}

void ListScheduler::startBucket(std::vector<TaskId> members, CloseReason reason) {
  const Graph &graph = problem.graph;
  BucketId id = buckets.size();
  NodeId first = problem.nodeOf[members.front()];
  GroupId group = graph.groupOf(first);
  CommunicationStream &stream = streams[group];
  Bucket &bucket = buckets.emplace_back();
  bucket.kind = graph.kindOf(first);
  active.erase({stream.freeUs, group});

  uint32_t key = input.keys.keyOf(members.front());
  result.closed.push_back(reason);
  result.capBytes.push_back(input.buckets.caps.bytesAt(bucketsOfKey[key]++));
  std::vector<NodeId> &nodes = result.plan.buckets.emplace_back();
  uint64_t bytes = 0;
  double pack = 0;
  for (TaskId member : members) {
    leaveQueue(member);
    bucketOf[member] = id;
    nodes.push_back(problem.nodeOf[member]);
    bytes += graph.fullBytes(problem.nodeOf[member]);
    pack += packUs(problem, member, input.model);
    bucket.unpackUs += unpackUs(problem, member, input.model);
  }
  emit(PlanItem::Kind::Pack, id);
  emit(PlanItem::Kind::Start, id);
  bucket.unpackUs += input.model.launchUs();
  if (input.flat)
    bucket.unpackUs = 0;
  else
    now += input.model.launchUs() + pack;
  now += input.model.launchUs();
  double us = input.model.collectiveUs(bucket.kind, graph.group(group).shape(), bytes);
  bucket.endUs = stream.freeUs = std::max(now, stream.freeUs) + us;
  if (!stream.ready().empty())
    active.insert({stream.freeUs, group});

  for (TaskId member : members)
    endUs[member] = bucket.endUs;
  bucket.members = std::move(members);
  bucket.toUnpack = !input.flat && needsUnpack(bucket.kind);
  if (bucket.toUnpack) {
    future.push({bucket.endUs, static_cast<TaskId>(problem.numTasks() + id)});
    ++left;
  } else {
    inFlight.push({bucket.endUs, bucket.members.front()});
  }
  for (TaskId member : bucket.members) {
    release(member, false, 0);
    if (!bucket.toUnpack)
      release(member, true, bucket.endUs);
  }
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

void ListScheduler::waitForOperands(TaskId task) {
  for (const Dependence &d : problem.before[task])
    if (d.complete && !waited(d.task))
      waitFor(d.task);
}

void ListScheduler::waitFor(TaskId task) {
  if (BucketId id = bucketOf[task]; id != none) {
    memory.finishBucket(id, buckets[id].members);
    finishBucket(id);
    return;
  }
  now = std::max(now, endUs[task]);
  emit(PlanItem::Kind::Op, problem.waitOf[task]);
  state[task] = State::Waited;
  memory.runStep(problem.stepOfWait[task]);
}

void ListScheduler::finishBucket(BucketId id) {
  Bucket &bucket = buckets[id];
  now = std::max(now, bucket.endUs);
  emit(PlanItem::Kind::Wait, id);
  for (TaskId member : bucket.members)
    state[member] = State::Waited;
  if (!needsUnpack(bucket.kind))
    return;
  emit(PlanItem::Kind::Unpack, id);
  now += bucket.unpackUs;
  if (!bucket.toUnpack)
    return;
  bucket.toUnpack = false;
  --left;
  TaskId unpack = problem.numTasks() + id;
  if (kernels.contains(unpack))
    kernels.remove(unpack);
  for (TaskId member : bucket.members)
    release(member, true, 0);
}

/// Waits for what has ended, in order of ends. Without pressure only for what has been complete for
/// as long as it took: estimates may be wrong by as much. Returns whether there was any.
bool ListScheduler::waitForEnded(bool pressed) {
  bool any = false;
  for (; !inFlight.empty(); inFlight.pop()) {
    auto [end, task] = inFlight.top();
    if (waited(task))
      continue;
    if (end + (pressed ? 0 : input.times.us[task]) > now)
      break;
    waitFor(task);
    any = true;
  }
  return any;
}
