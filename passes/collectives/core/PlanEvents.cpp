// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/core/PlanEvents.h"

#include <algorithm>
#include <numeric>

using namespace shardc;
using namespace shardc::collectives;

PlanEvents::PlanEvents(const Problem &problem, const BucketKeys &keys, const Decision &decision)
    : problem(problem), keys(keys), decision(decision), position(2 * problem.numTasks(), none),
      membersOf(problem.numTasks()), unitOfTask(problem.numTasks(), none),
      leader(problem.numTasks()), waiters(problem.numTasks()), key(problem.numTasks(), none),
      waitNode(problem.waitOf), bucketOf(problem.numTasks(), none) {
  std::iota(leader.begin(), leader.end(), 0);
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    key[task] = keys.keyOf(task);
  load(decision.plan);
  // What shares a wait, or a wait node, with others stays as it is.
  for (UnitId unit = 0; unit != problem.numTasks(); ++unit) {
    bool fixed = leader[unit] != unit || waiters[unit].size() > 1;
    for (TaskId member : membersOf[unit])
      fixed =
          fixed || waitNode[member] == none || problem.graph.operands(waitNode[member]).size() != 1;
    for (TaskId member : membersOf[unit])
      if (fixed)
        key[member] = none;
  }
}

void PlanEvents::append(EventId event) {
  position[event] = order.size();
  order.push_back(event);
}

/// Several waits for one collective count as the first. Arithmetic runs as early as it can.
void PlanEvents::load(const Plan &plan) {
  const Graph &graph = problem.graph;
  std::vector<uint32_t> missing(problem.numTasks());
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    missing[task] = problem.before[task].size();
  std::vector<TaskId> ready;
  auto isFree = [&](TaskId task) { return !problem.isKernel(task) && !problem.isCollective(task); };
  auto release = [&](TaskId of, bool complete) {
    for (const Dependence &d : problem.after[of])
      if (d.complete == complete && --missing[d.task] == 0 && isFree(d.task))
        ready.push_back(d.task);
  };
  auto runReady = [&] {
    while (!ready.empty()) {
      TaskId task = ready.back();
      ready.pop_back();
      append(task);
      release(task, false);
      release(task, true);
    }
  };
  for (TaskId task = 0; task != problem.numTasks(); ++task)
    if (missing[task] == 0 && isFree(task))
      ready.push_back(task);
  std::vector<UnitId> unitOfBucket(plan.buckets.size(), none);
  auto start = [&](std::span<const NodeId> nodes) {
    UnitId unit = problem.taskOf[nodes.front()];
    for (NodeId node : nodes) {
      membersOf[unit].push_back(problem.taskOf[node]);
      unitOfTask[problem.taskOf[node]] = unit;
      append(problem.taskOf[node]);
    }
    for (NodeId node : nodes)
      release(problem.taskOf[node], false);
    return unit;
  };
  for (auto [kind, id] : plan.items) {
    runReady();
    switch (kind) {
    case PlanItem::Kind::Op:
      if (graph.isKernel(id)) {
        TaskId task = problem.taskOf[id];
        append(task);
        release(task, false);
        release(task, true);
      } else if (graph.isCollective(id)) {
        start(std::span(&id, 1));
      } else if (graph.classOf(id) == NodeClass::Wait) {
        for (UnitId unit : noteWait(id))
          release(unit, true);
      }
      break;
    case PlanItem::Kind::Start:
      unitOfBucket[id] = start(plan.buckets[id]);
      bucketOf[unitOfBucket[id]] = id;
      break;
    case PlanItem::Kind::Wait:
      for (NodeId node : plan.buckets[id]) {
        TaskId task = problem.taskOf[node];
        waiters[task] = {task};
        append(problem.numTasks() + task);
      }
      for (NodeId node : plan.buckets[id])
        release(problem.taskOf[node], true);
      break;
    case PlanItem::Kind::Pack:
    case PlanItem::Kind::Unpack:
      break;
    }
  }
  runReady();
}

/// A wait node of a plan, for all that it waits for that is in flight and in no bucket. Returns
/// these.
std::vector<UnitId> PlanEvents::noteWait(NodeId node) {
  const Graph &graph = problem.graph;
  std::vector<UnitId> units;
  for (ValueId value : graph.operands(node)) {
    NodeId collective = graph.pendingOf(value);
    UnitId unit = collective == none ? none : unitOfTask[problem.taskOf[collective]];
    if (unit == none || isBucket(unit) || position[waitOf(unit)] != none)
      continue;
    if (std::ranges::find(units, unit) != units.end())
      continue;
    units.push_back(unit);
    leader[unit] = units.front();
    waitNode[unit] = node;
  }
  if (!units.empty()) {
    append(problem.numTasks() + units.front());
    waiters[units.front()] = units;
  }
  return units;
}

uint64_t PlanEvents::fullBytes(UnitId unit) const {
  uint64_t bytes = 0;
  for (TaskId member : membersOf[unit])
    bytes += problem.graph.fullBytes(problem.nodeOf[member]);
  return bytes;
}

//===----------------------------------------------------------------------===//
// Dependences
//===----------------------------------------------------------------------===//

EventId PlanEvents::behind(const Dependence &d) const {
  if (!problem.isCollective(d.task))
    return d.task;
  UnitId unit = unitOfTask[d.task];
  return d.complete ? waitOf(unit) : unit;
}

uint32_t PlanEvents::lowestStart(UnitId unit) const {
  uint32_t first = 0;
  for (TaskId member : membersOf[unit])
    for (const Dependence &d : problem.before[member])
      first = std::max(first, position[behind(d)] + 1);
  return first;
}

/// Without its wait.
uint32_t PlanEvents::highestStart(UnitId unit) const {
  uint32_t end = order.size();
  for (TaskId member : membersOf[unit])
    for (const Dependence &d : problem.after[member])
      if (!d.complete)
        end = std::min(end, position[problem.isCollective(d.task) ? unitOfTask[d.task] : d.task]);
  return end - 1;
}

uint32_t PlanEvents::highestWait(UnitId unit) const {
  uint32_t end = order.size();
  for (TaskId member : membersOf[unit])
    for (const Dependence &d : problem.after[member])
      if (d.complete)
        end = std::min(end, position[problem.isCollective(d.task) ? unitOfTask[d.task] : d.task]);
  return end - 1;
}

uint32_t PlanEvents::lowest(EventId event) const {
  uint32_t first = 0;
  if (isWait(event)) {
    for (UnitId unit : waitedWith(event))
      first = std::max(first, position[unit] + 1);
  } else if (isStart(event)) {
    first = lowestStart(event);
  } else {
    for (const Dependence &d : problem.before[event])
      first = std::max(first, position[behind(d)] + 1);
  }
  return first;
}

uint32_t PlanEvents::highest(EventId event) const {
  uint32_t last = order.size() - 1;
  if (isWait(event)) {
    for (UnitId unit : waitedWith(event))
      last = std::min(last, highestWait(unit));
  } else if (isStart(event)) {
    last = highestStart(event);
    if (uint32_t wait = position[waitOf(event)]; wait != none)
      last = std::min(last, wait - 1);
  } else {
    for (const Dependence &d : problem.after[event])
      last =
          std::min(last, position[problem.isCollective(d.task) ? unitOfTask[d.task] : d.task] - 1);
  }
  return last;
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

void PlanEvents::rotate(uint32_t from, uint32_t to) {
  auto begin = order.begin();
  if (from < to)
    std::rotate(begin + from, begin + from + 1, begin + to + 1);
  else
    std::rotate(begin + to, begin + from, begin + from + 1);
  for (uint32_t at = std::min(from, to), end = std::max(from, to); at <= end; ++at)
    position[order[at]] = at;
}

void PlanEvents::moveMember(TaskId member, UnitId to) {
  std::vector<TaskId> &others = membersOf[unitOfTask[member]];
  others.erase(std::find(others.begin(), others.end(), member));
  membersOf[to].push_back(member);
  unitOfTask[member] = to;
}

void PlanEvents::shift(uint32_t from, uint32_t to) {
  if (from == to)
    return;
  log.push_back({false, order[from], from, to});
  rotate(from, to);
}

void PlanEvents::transfer(TaskId member, UnitId to) {
  log.push_back({true, member, unitOfTask[member], to});
  moveMember(member, to);
}

bool PlanEvents::settle(UnitId unit) {
  if (uint32_t first = lowestStart(unit); position[unit] < first)
    shift(position[unit], first - 1); // what it comes after moves up
  if (position[unit] > highestStart(unit))
    return false;
  if (uint32_t last = highestWait(unit); position[waitOf(unit)] > last)
    shift(position[waitOf(unit)], last + 1);
  return position[unit] < position[waitOf(unit)];
}

void PlanEvents::undo() {
  for (; !log.empty(); log.pop_back())
    if (auto [transfers, id, from, to] = log.back(); transfers)
      moveMember(id, from);
    else
      rotate(to, from);
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

Decision PlanEvents::decide(const BucketOptions &options) const {
  Decision made{{}, {}, {}, decision.alone};
  std::vector<BucketId> idOf(problem.numTasks(), none);
  std::vector<uint32_t> bucketsOfKey(keys.numKeys());
  auto item = [&](PlanItem::Kind kind, uint32_t id) { made.plan.items.push_back({kind, id}); };
  for (EventId event : order) {
    if (!isWait(event) && !isStart(event)) {
      if (problem.isKernel(event))
        item(PlanItem::Kind::Op, problem.nodeOf[event]);
      continue;
    }
    UnitId unit = unitOfEvent(event);
    if (membersOf[unit].empty())
      continue;
    if (!isBucket(unit)) {
      TaskId member = membersOf[unit].front();
      item(PlanItem::Kind::Op, isWait(event) ? waitNode[member] : problem.nodeOf[member]);
    } else if (isWait(event)) {
      item(PlanItem::Kind::Wait, idOf[unit]);
      if (needsUnpack(kindOf(unit)))
        item(PlanItem::Kind::Unpack, idOf[unit]);
    } else {
      idOf[unit] = made.plan.buckets.size();
      std::vector<NodeId> &nodes = made.plan.buckets.emplace_back();
      for (TaskId member : membersOf[unit])
        nodes.push_back(problem.nodeOf[member]);
      std::sort(nodes.begin(), nodes.end());
      made.closed.push_back(CloseReason::Cost);
      if (bucketOf[unit] != none) {
        const std::vector<NodeId> &given = decision.plan.buckets[bucketOf[unit]];
        std::vector<NodeId> sorted = given;
        std::sort(sorted.begin(), sorted.end());
        if (sorted == nodes) {
          nodes = given;
          made.closed.back() = decision.closed[bucketOf[unit]];
        }
      }
      uint32_t of = keys.keyOf(membersOf[unit].front());
      made.capBytes.push_back(options.caps.bytesAt(bucketsOfKey[of]++));
      item(PlanItem::Kind::Pack, idOf[unit]);
      item(PlanItem::Kind::Start, idOf[unit]);
    }
  }
  return made;
}
