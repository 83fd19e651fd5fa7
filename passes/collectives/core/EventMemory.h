// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How much memory is live at each event of a plan that is being changed.

#ifndef SHARDC_PASSES_COLLECTIVES_CORE_EVENTMEMORY_H
#define SHARDC_PASSES_COLLECTIVES_CORE_EVENTMEMORY_H

#include "passes/collectives/core/PlanEvents.h"

namespace shardc::collectives {

/// The bytes are those of peak_hold_bytes (Simulate.h).
class EventMemory {
public:
  /// `flat`: buckets need no packing.
  EventMemory(const PlanEvents &events, bool flat);

  /// Call after changes of the plan, and again after they are undone, with the events that moved
  /// and both events of each unit whose members changed; the positions of all that moved are from
  /// `first` to `last`. Returns the most that is live where that may have changed. It takes time
  /// for the positions from `first` to `last` and for those where a storage is live now, but was
  /// not, or the other way round.
  uint64_t update(std::span<const EventId> changed, uint32_t first, uint32_t last);

  /// Of the whole plan. O(n).
  uint64_t peakBytes() const;

private:
  /// The problem's, then two for each unit, where it is a bucket: what is packed, and its results.
  using Storage = uint32_t;
  Storage packedOf(UnitId unit) const { return problem.storageBytes.size() + 2 * unit; }
  Storage resultOf(UnitId unit) const { return packedOf(unit) + 1; }
  bool isPacked(UnitId unit) const { return !flat && events.isBucket(unit); }
  bool landsInResult(UnitId unit) const {
    return isPacked(unit) && !needsUnpack(events.kindOf(unit));
  }

  struct Use {
    enum Role : uint8_t { Kernel, Operand, Result };
    TaskId task;
    Role role;
  };
  struct Live {
    EventId first = none, last = none;
    uint64_t bytes = 0;
    bool pinned = false;
    bool operator==(const Live &) const = default;
  };

  template <typename Fn> void forEachStorage(TaskId task, Fn fn) const;
  template <typename Fn> void forEachUse(Storage storage, Fn fn) const;
  /// The bucket in whose result a storage lies; `none` for most.
  UnitId bucketAround(Storage storage) const;
  Live liveOf(Storage storage) const;
  void account(const Live &live, bool add);
  /// What the event takes at most, when `carried` bytes are live before it; sets `carried` to what
  /// is live behind it.
  uint64_t pass(EventId event, uint64_t &carried) const;
  void collect(EventId event);

  const PlanEvents &events;
  const Problem &problem;
  bool flat;
  Rows<Use> usesOf;              // by storage of the problem
  std::vector<TaskId> scattered; // by storage of the problem: the reduce-scatter it is a result of
  std::vector<Live> storages;
  std::vector<uint64_t> begin, end; // by event: the bytes that begin and end there
  std::vector<uint64_t> carry;      // by position: what is live before it
  std::vector<Storage> affected;
};

} // namespace shardc::collectives

#endif // SHARDC_PASSES_COLLECTIVES_CORE_EVENTMEMORY_H
