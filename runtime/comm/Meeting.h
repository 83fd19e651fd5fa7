// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ranks that share memory come together: numbered phases in a place that all members of a group
// reach, and what happens when one of them does not come.
#ifndef SHARDC_RUNTIME_COMM_MEETING_H
#define SHARDC_RUNTIME_COMM_MEETING_H

#include "runtime/comm/Communicator.h"

#include <functional>

namespace shardc::rt {

/// The meeting point of the members of one group, in memory that all of them reach: `Slot`s, one
/// for each member, stand beside it. Members come together in numbered phases; each leaves what it
/// wants the others to see in its slot before it arrives, and may change it only after the next
/// phase in which all have read it. Nothing in it is a lock: a member that dies holds nothing.
struct MeetingPlace {
  struct Slot {
    std::atomic<uint64_t> phase{0}; ///< the last phase this member arrived at
    uint64_t offer = 0;             ///< what it shows; means something to its communicator
  };

  explicit MeetingPlace(bool betweenProcesses) : complete(betweenProcesses) {}

  // Of the newest phase, written by its last member before the others go on.
  Clock::time_point allArrived;
  bool done = false;                 ///< that member did everybody's part
  std::atomic<uint32_t> worker{0};   ///< its position, while it may be doing that
  std::atomic<uint32_t> arrivals{0}; ///< of the current phase
  Signal complete;                   ///< advances when all have arrived
};

/// A group of ranks that meet, and this rank's way through its phases.
class MeetingGroup : public Group {
public:
  MeetingGroup(std::vector<uint32_t> members, uint32_t position, MeetingPlace &place,
               MeetingPlace::Slot *slots)
      : Group(std::move(members), position), place(place), slots(slots, this->members.size()),
        calls(this->members.size()) {}

  MeetingPlace &place;
  const std::span<MeetingPlace::Slot> slots;
  uint64_t phase = 0;
  std::vector<const CollectiveCall *> calls; ///< of all members; reused from call to call
};

/// What a rank is doing, for messages; the text is made only when something went wrong.
struct Activity {
  const char *text = "";
  const shardrt_collective *collective = nullptr;
  uint64_t run = 0; ///< 0: not part of a run
  std::string str() const { return collective ? describe(*collective) : text; }
};

/// Where a rank is, as others are told. Written by the rank, read at any time by whoever makes a
/// message in its process.
struct Whereabouts {
  std::atomic<const shardrt_op *> op{nullptr};
  std::atomic<const shardrt_collective *> collective{nullptr};
  /// "in all_reduce.7 (...)", "in linear (...)", "not running".
  std::string place() const;
  /// "is in all_reduce.7 (...)", "was last seen in linear (...)", "is not running".
  std::string str() const;
};

/// Says that a rank is in a collective while it lives.
class InCollective {
public:
  InCollective(Whereabouts &where, const shardrt_collective &collective) : where(where) {
    where.collective.store(&collective, std::memory_order_relaxed);
  }
  ~InCollective() { where.collective.store(nullptr, std::memory_order_relaxed); }
  InCollective(const InCollective &) = delete;

private:
  Whereabouts &where;
};

/// The ranks that may meet, as one of them or all see it.
class MeetingWorld {
public:
  /// `cores`: that the ranks together can use.
  MeetingWorld(uint32_t size, uint32_t cores, Sharing sharing);
  virtual ~MeetingWorld() = default;

  const uint32_t size;
  const Sharing sharing;
  const bool crowded; ///< ranks have to take turns on the cores

  /// Arrives at the next phase of the group and waits for the other members. The last to arrive
  /// calls `last`, which may throw, before anybody goes on. Throws when the world is given up,
  /// which it does itself at the deadline or when a missing member cannot come.
  void meet(MeetingGroup &group, const Activity &activity, Clock::time_point deadline,
            const std::function<void()> &last = {});

  /// Reading and writing other ranks' operands is allowed between beginTouching (if it returns
  /// true) and endTouching. Once the world is given up it returns false.
  virtual bool beginTouching(uint32_t rank) = 0;
  virtual void endTouching(uint32_t rank) = 0;

  /// Gives the world up if it is not yet, and throws as failAborted does.
  [[noreturn]] virtual void fail(const MeetingGroup &group, const Activity &activity,
                                 shardrt_status status, const std::string &reason) = 0;
  /// Of a world that was given up: throws, when no member will touch this rank's operands any more.
  [[noreturn]] virtual void failAborted(const MeetingGroup &group, const Activity &activity) = 0;

  virtual bool givenUp() const = 0;
  /// Why one of the members will not come to a meeting of this run; empty: all may.
  std::string absent(const Group &group, uint64_t run);

protected:
  /// Why a rank will not come to a meeting of this run ("rank 1 has left ..."); empty: it may.
  virtual std::string whyAbsent(uint32_t rank, uint64_t run) = 0;
  /// "rank 2 is not running; rank 3 was last seen in ...".
  virtual std::string whereAre(std::span<const uint32_t> ranks) = 0;
  /// Whether a member may stop for good while it does everybody's part, and the others go on
  /// without it.
  virtual bool mayStopAtWork() const { return false; }
  /// The members that have not arrived at the group's current phase.
  static std::vector<uint32_t> missing(const MeetingGroup &group);
  /// Whom this member waits for: those, or when all are there the one that is at work.
  static std::vector<uint32_t> waitedFor(const MeetingGroup &group);

private:
  const Spin spin;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_MEETING_H
