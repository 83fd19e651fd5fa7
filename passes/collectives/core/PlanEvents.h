// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan that is being changed: kernels, starts and waits in a row, and which collectives share a
// bucket. What is no event of its own (packing, unpacking) goes with the start or the wait.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_PLANEVENTS_H
#define SHARDC_PASSES_COLLECTIVES_CORE_PLANEVENTS_H

#include "passes/collectives/core/ScheduleSearch.h"

namespace shardc::collectives {

/// A kernel or another task that is no collective: its TaskId. A unit's start: the UnitId. A unit's
/// wait: the number of tasks + the UnitId.
using EventId = uint32_t;

/// One collective, or several that share a bucket. There is one for each collective, by its TaskId;
/// units without members do nothing.
using UnitId = TaskId;

class PlanEvents {
public:
  /// `problem` is of the graph's own order, and `decision` has a plan that checkPlan accepts.
  PlanEvents(const Problem &problem, const BucketKeys &keys, const Decision &decision);

  const Problem &problem;

  size_t size() const { return order.size(); }
  EventId at(uint32_t position) const { return order[position]; }
  /// `none` for the wait of what is never waited for, or is waited for together with others.
  uint32_t positionOf(EventId event) const { return position[event]; }

  bool isWait(EventId event) const { return event >= problem.numTasks(); }
  bool isStart(EventId event) const { return !isWait(event) && problem.isCollective(event); }
  /// Of a start or a wait.
  UnitId unitOfEvent(EventId event) const {
    return isWait(event) ? event - problem.numTasks() : event;
  }
  EventId waitOf(UnitId unit) const { return problem.numTasks() + leader[unit]; }

  std::span<const TaskId> members(UnitId unit) const { return membersOf[unit]; }
  UnitId unitOf(TaskId collective) const { return unitOfTask[collective]; }
  bool isBucket(UnitId unit) const { return membersOf[unit].size() > 1; }
  CollectiveKind kindOf(UnitId unit) const { return problem.graph.kindOf(firstNode(unit)); }
  GroupId groupOf(UnitId unit) const { return problem.graph.groupOf(firstNode(unit)); }
  uint64_t fullBytes(UnitId unit) const;
  /// Those that a wait is for.
  std::span<const UnitId> waitedWith(EventId wait) const { return waiters[unitOfEvent(wait)]; }
  /// Of a collective; `none` where it can be in no bucket, or only in the one that it is in.
  uint32_t keyOfTask(TaskId collective) const { return key[collective]; }
  /// Of its members; `none` where nothing can join it or leave it.
  uint32_t keyOf(UnitId unit) const {
    return membersOf[unit].empty() ? none : key[membersOf[unit].front()];
  }

  /// The first and the last position to which dependences let an event move; one that has a
  /// position.
  uint32_t lowest(EventId event) const;
  uint32_t highest(EventId event) const;

  /// Moves what is in one position to another; what lies between moves up.
  void shift(uint32_t from, uint32_t to);
  /// Moves a collective to another unit, at the end of its members.
  void transfer(TaskId member, UnitId to);
  /// Moves a unit's start back and its wait forward as far as its present members need it. False,
  /// with a plan that only `undo` can save, if there is no place for them.
  bool settle(UnitId unit);

  /// What was done since the last `keep` or `undo`, in order: an event that was shifted from one
  /// position to another, or a collective that was transferred from one unit to another.
  struct Change {
    bool transfers;
    uint32_t id, from, to;
  };
  std::span<const Change> changes() const { return log; }
  void keep() { log.clear(); }
  void undo();

  /// The plan. Buckets whose members changed are closed by `Cost`.
  Decision decide(const BucketOptions &options) const;

private:
  NodeId firstNode(UnitId unit) const { return problem.nodeOf[membersOf[unit].front()]; }
  void append(EventId event);
  void load(const Plan &plan);
  std::vector<UnitId> noteWait(NodeId node);
  void rotate(uint32_t from, uint32_t to);
  void moveMember(TaskId member, UnitId to);
  uint32_t lowestStart(UnitId unit) const;
  uint32_t highestStart(UnitId unit) const;
  uint32_t highestWait(UnitId unit) const;
  /// The event behind which what a task leaves can be used.
  EventId behind(const Dependence &d) const;

  const BucketKeys &keys;
  const Decision &decision;
  std::vector<EventId> order;
  std::vector<uint32_t> position;             // by event
  std::vector<std::vector<TaskId>> membersOf; // by unit
  std::vector<UnitId> unitOfTask;
  std::vector<UnitId> leader; // by unit: whose wait is its wait
  std::vector<std::vector<UnitId>> waiters;
  std::vector<uint32_t> key; // by task
  /// By task: the node that waits for it where it is alone.
  std::vector<NodeId> waitNode;
  std::vector<BucketId> bucketOf; // of the plan as it was given, by unit
  std::vector<Change> log;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_PLANEVENTS_H
