// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's view of a world of processes that share memory: where groups meet, how to reach the
// others' memory, and what the control plane says about them.
#ifndef SHARDC_RUNTIME_SHARED_SHAREDWORLD_H
#define SHARDC_RUNTIME_SHARED_SHAREDWORLD_H

#include "runtime/comm/Meeting.h"
#include "runtime/control/ControlPlane.h"
#include "runtime/shared/SegmentHeap.h"
#include "runtime/shared/SegmentServer.h"

#include <mutex>

namespace shardc::rt {

/// Where a rank is, in memory that the others see even when it has died or does not run. Its rank
/// writes it; what others read of it while it changes may be garbled.
class Board {
public:
  /// For every kernel: costs a few loads and stores where the op was seen before.
  void noteOp(const shardrt_op *op);
  /// Null: the rank is in none.
  void noteCollective(const shardrt_collective *collective);
  /// "is in all_reduce.7 (...)", "was last seen in linear (...)", "is not running".
  std::string str() const;

private:
  static constexpr size_t ops = 1024;
  struct Text {
    char bytes[184];
    void set(const char *name, const char *location);
    std::string str() const;
  };
  /// The texts of ops, by their addresses in the process of the rank.
  struct OpText {
    std::atomic<uint64_t> op;
    Text text;
  };
  static size_t slotOf(uint64_t op) { return (op >> 4) % ops; }

  std::atomic<uint64_t> op;
  std::atomic<uint32_t> inCollective;
  Text collective;
  OpText texts[ops];
};

/// A segment of its own, made by rank 0: where ranks are, and the places where groups meet. These
/// are found by their members, in a list that only grows; nobody needs a lock for that.
class Meetings {
public:
  static constexpr uint32_t segmentNumber = UINT32_MAX - 1;

  /// Rank 0 makes it.
  static Descriptor make(uint32_t worldSize);
  Meetings(Mapping mapping, uint32_t worldSize);

  /// The place of these members, which is made if it is not there. Throws Failure if there is no
  /// room for it, or the list makes no sense.
  struct Found {
    MeetingPlace *place;
    MeetingPlace::Slot *slots;
  };
  Found find(std::span<const uint32_t> members);

  Board &board(uint32_t rank) const;
  /// Gives the world up for all that are in it at once; the first reason is kept. What the control
  /// plane says takes a while, and must not pass a rank that is stopped.
  void giveUp(uint32_t rank, shardrt_status status, std::string_view reason);
  bool givenUp() const;
  struct Reason {
    uint32_t rank;
    shardrt_status status;
    std::string text;
  };
  /// Nothing if no rank has said one, or it has died before it was written.
  std::optional<Reason> reason() const;

private:
  struct Head;
  struct Entry;
  Head &head() const;
  Entry *entryAt(uint64_t offset) const;
  static uint64_t entryBytes(uint64_t members);
  static uint64_t boardsEnd(uint64_t worldSize);

  Mapping mapping;
  const uint32_t worldSize;
};

/// How a world is found, by each rank: what makeSharedMemoryEnd has told and heard.
struct SharedWorldFacts {
  std::vector<SegmentAddress> addresses; ///< by rank
  uint32_t cores = 1;                    ///< that all ranks together can use
};

class SharedWorld final : public MeetingWorld {
public:
  SharedWorld(std::shared_ptr<ControlPlane> control, SharedWorldFacts facts, Mapping meetings,
              Sharing sharing);
  /// After it nobody is woken, or answered, any more.
  ~SharedWorld() override;

  std::unique_ptr<MeetingGroup> group(std::vector<uint32_t> members, uint32_t position);

  /// The other's segment; asks for it the first time. Throws Failure if it cannot be had.
  const Mapping &segment(uint32_t rank, uint32_t number, Clock::time_point deadline);

  /// Nothing has to be said: operands are in segments of this world, which nobody uses for anything
  /// else once it was given up, and which each process unmaps for itself.
  bool beginTouching(uint32_t) override { return !givenUp(); }
  void endTouching(uint32_t) override {}
  [[noreturn]] void fail(const MeetingGroup &group, const Activity &activity, shardrt_status status,
                         const std::string &reason) override;
  [[noreturn]] void failAborted(const MeetingGroup &group, const Activity &activity) override;

  void abort(shardrt_status status, const std::string &reason) noexcept;
  bool givenUp() const override;

  void noteOp(const shardrt_op *op) {
    heard->where.op.store(op, std::memory_order_relaxed);
    board.noteOp(op);
    if (!op) // What the last op and collective are called may go away after this: nobody reads it.
      std::lock_guard lock(heard->mutex);
  }
  /// Null: in none.
  void noteCollective(const shardrt_collective *collective) {
    heard->where.collective.store(collective, std::memory_order_relaxed);
    board.noteCollective(collective);
  }

private:
  /// What the plane's thread uses, for as long as it may.
  struct Heard {
    Whereabouts where;
    std::mutex mutex;                   ///< held while texts of `where` are read
    std::vector<MeetingPlace *> places; ///< guarded by mutex: those that this rank waits at
  };

  std::string whyAbsent(uint32_t rank, uint64_t run) override;
  std::string whereAre(std::span<const uint32_t> which) override;
  bool mayStopAtWork() const override { return true; }
  /// Status and text of a failure that concerns this rank, whose activity is in front.
  Failure reason(const Activity &activity) const;

  const std::shared_ptr<ControlPlane> control;
  const SharedWorldFacts facts;
  Meetings meetings;
  Board &board; ///< this rank's own
  const std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::vector<std::vector<Mapping>> segments; ///< of other ranks, by rank and number
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SHARED_SHAREDWORLD_H
