// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of a local world share: who is where, who has arrived, and why it was given up.
#ifndef SHARDC_RUNTIME_COMM_LOCALWORLD_H
#define SHARDC_RUNTIME_COMM_LOCALWORLD_H

#include "runtime/comm/Communicator.h"

#include <functional>
#include <map>
#include <mutex>

namespace shardc::rt {

/// The meeting point of the members of one group. Members come together in numbered phases; each
/// leaves what it wants the others to see in its slot before it arrives, and may change it only
/// after the next phase in which all have read it.
struct LocalChannel {
  struct Slot {
    std::atomic<uint64_t> phase{0}; ///< the last phase this member arrived at
    const char *purpose = "";       ///< "a collective", or the name of a topic
    const void *payload = nullptr;  ///< CollectiveCall, or the std::string_view of an exchange
  };

  explicit LocalChannel(std::vector<uint32_t> members)
      : members(std::move(members)), slots(this->members.size()) {}

  const std::vector<uint32_t> members;
  std::vector<Slot> slots;
  // Of the newest phase, written by its last member before the others go on.
  Clock::time_point allArrived;
  bool done = false;                 ///< that member did everybody's part
  std::atomic<uint32_t> arrivals{0}; ///< of the current phase
  Signal complete;                   ///< advances when all have arrived
};

/// What a rank is doing, for messages; the text is made only when something went wrong.
struct Activity {
  const char *text = "";
  const shardrt_collective *collective = nullptr;
  uint64_t run = 0; ///< 0: not part of a run
  std::string str() const { return collective ? describe(*collective) : text; }
};

class LocalWorld {
public:
  LocalWorld(uint32_t size, Sharing sharing)
      : sharing(sharing), ranks(size), spin(Spin::among(size, std::chrono::microseconds(50))) {}

  uint32_t size() const { return uint32_t(ranks.size()); }
  const Sharing sharing;
  LocalChannel &channel(const std::vector<uint32_t> &members);

  /// Arrives at a phase of the channel and waits for the other members. The last to arrive calls
  /// `last`, which may throw, before anybody goes on. Throws when the world is given up, which it
  /// does itself at the deadline or when a missing member cannot come.
  void meet(LocalChannel &channel, uint32_t position, uint64_t phase, const Activity &activity,
            Clock::time_point deadline, const std::function<void()> &last = {});

  /// Whether ranks have to take turns on the cores.
  bool crowded() const { return std::thread::hardware_concurrency() < size(); }

  /// Reading and writing other ranks' operands is allowed between beginTouching (if it returns
  /// true) and endTouching. Once the world is given up it returns false.
  bool beginTouching(uint32_t rank);
  void endTouching(uint32_t rank);

  void abort(uint32_t rank, shardrt_status status, const std::string &reason);
  /// Gives the world up if it is not yet, waits until no member touches this rank's operands any
  /// more (which ends by itself: nobody waits while touching), and throws.
  [[noreturn]] void fail(LocalChannel &channel, uint32_t rank, const Activity &activity,
                         shardrt_status status, const std::string &reason);
  /// As fail, for a world that another rank has given up.
  [[noreturn]] void failAborted(LocalChannel &channel, uint32_t rank, const Activity &activity);

  void refuse(uint32_t rank, uint64_t run, const std::string &reason);
  void leave(uint32_t rank);
  void notePosition(uint32_t rank, const shardrt_op *op) {
    ranks[rank].op.store(op, std::memory_order_relaxed);
  }
  void noteCollective(uint32_t rank, const shardrt_collective *collective) {
    ranks[rank].collective.store(collective, std::memory_order_relaxed);
  }

private:
  struct alignas(64) RankState {
    std::atomic<const shardrt_op *> op{nullptr};
    std::atomic<const shardrt_collective *> collective{nullptr};
    std::atomic<bool> touching{false};
    std::atomic<bool> gone{false};
    std::atomic<uint64_t> refusedRun{0}; ///< runs count from 1
    std::string refusal;                 ///< guarded by mutex
  };

  std::vector<uint32_t> missing(const LocalChannel &channel, uint64_t phase) const;
  std::string whereIs(uint32_t rank);
  void wakeAll();

  std::vector<RankState> ranks;
  const Spin spin;
  std::mutex mutex; ///< guards channels, the reason, and refusals
  std::map<std::vector<uint32_t>, std::unique_ptr<LocalChannel>> channels;
  std::atomic<bool> aborted{false};
  shardrt_status abortStatus = SHARDRT_OK;
  uint32_t abortRank = 0;
  std::string abortReason;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_LOCALWORLD_H
