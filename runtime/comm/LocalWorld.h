// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of a world of threads share: where they meet, who is where, and why it was given
// up.
#ifndef SHARDC_RUNTIME_COMM_LOCALWORLD_H
#define SHARDC_RUNTIME_COMM_LOCALWORLD_H

#include "runtime/comm/Meeting.h"

#include <map>
#include <mutex>

namespace shardc::rt {

class LocalWorld final : public MeetingWorld {
public:
  LocalWorld(uint32_t size, Sharing sharing)
      : MeetingWorld(size, std::thread::hardware_concurrency(), sharing), ranks(size) {}

  /// This rank's end of the place where these members meet.
  std::unique_ptr<MeetingGroup> group(std::vector<uint32_t> members, uint32_t position);

  bool givenUp() const override { return aborted.load(std::memory_order_seq_cst); }
  bool beginTouching(uint32_t rank) override;
  void endTouching(uint32_t rank) override;
  /// Waits until no member touches this rank's operands any more, which ends by itself: nobody
  /// waits while touching.
  [[noreturn]] void failAborted(const MeetingGroup &group, const Activity &activity) override;
  [[noreturn]] void fail(const MeetingGroup &group, const Activity &activity, shardrt_status status,
                         const std::string &reason) override;

  void abort(uint32_t rank, shardrt_status status, const std::string &reason);
  void refuse(uint32_t rank, uint64_t run, const std::string &reason);
  void leave(uint32_t rank);
  Whereabouts &whereabouts(uint32_t rank) { return ranks[rank].where; }

private:
  struct alignas(64) RankState {
    Whereabouts where;
    std::atomic<bool> touching{false};
    std::atomic<bool> gone{false};
    std::atomic<uint64_t> refusedRun{0}; ///< runs count from 1
    std::string refusal;                 ///< guarded by mutex
  };
  struct Channel {
    explicit Channel(size_t members) : place(false), slots(members) {}
    MeetingPlace place;
    std::vector<MeetingPlace::Slot> slots;
  };

  std::string whyAbsent(uint32_t rank, uint64_t run) override;
  std::string whereAre(std::span<const uint32_t> which) override;
  void wakeAll();

  std::vector<RankState> ranks;
  std::mutex mutex; ///< guards channels, the reason, and refusals
  std::map<std::vector<uint32_t>, std::unique_ptr<Channel>> channels;
  std::atomic<bool> aborted{false};
  shardrt_status abortStatus = SHARDRT_OK;
  uint32_t abortRank = 0;
  std::string abortReason;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_LOCALWORLD_H
