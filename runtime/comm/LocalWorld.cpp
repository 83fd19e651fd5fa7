// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/LocalWorld.h"

#include <thread>

namespace shardc::rt {

std::unique_ptr<MeetingGroup> LocalWorld::group(std::vector<uint32_t> members, uint32_t position) {
  std::lock_guard lock(mutex);
  std::unique_ptr<Channel> &entry = channels[members];
  if (!entry)
    entry = std::make_unique<Channel>(members.size());
  return std::make_unique<MeetingGroup>(std::move(members), position, entry->place,
                                        entry->slots.data());
}

std::string LocalWorld::whyAbsent(uint32_t rank, uint64_t run) {
  std::string name = "rank " + std::to_string(rank);
  // Looked at first, as it comes first: a rank that refuses a run may leave because of that.
  const bool gone = ranks[rank].gone.load(std::memory_order_acquire);
  if (run != 0 && ranks[rank].refusedRun.load(std::memory_order_acquire) >= run) {
    std::lock_guard lock(mutex);
    return name + " did not start this run: " + ranks[rank].refusal;
  }
  return gone ? name + " has left and cannot take part" : "";
}

std::string LocalWorld::whereAre(std::span<const uint32_t> which) {
  std::string text;
  for (uint32_t rank : which) {
    const RankState &state = ranks[rank];
    bool gone = state.gone.load(std::memory_order_acquire);
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + " " +
            (gone ? "has left" : state.where.str());
  }
  return text;
}

bool LocalWorld::beginTouching(uint32_t rank) {
  // Pairs with fail: either this rank sees that the world was given up, or the rank that gives up
  // sees that this one is touching, and waits.
  ranks[rank].touching.store(true, std::memory_order_seq_cst);
  if (!aborted.load(std::memory_order_seq_cst))
    return true;
  endTouching(rank);
  return false;
}

void LocalWorld::endTouching(uint32_t rank) {
  ranks[rank].touching.store(false, std::memory_order_seq_cst);
}

void LocalWorld::abort(uint32_t rank, shardrt_status status, const std::string &reason) {
  {
    std::lock_guard lock(mutex);
    if (aborted.load(std::memory_order_relaxed))
      return;
    abortStatus = status;
    abortRank = rank;
    abortReason = reason;
    aborted.store(true, std::memory_order_seq_cst);
  }
  wakeAll();
}

void LocalWorld::fail(const MeetingGroup &group, const Activity &activity, shardrt_status status,
                      const std::string &reason) {
  abort(group.members[group.position], status, activity.str() + ": " + reason);
  failAborted(group, activity);
}

void LocalWorld::failAborted(const MeetingGroup &group, const Activity &activity) {
  uint32_t self = group.members[group.position];
  for (uint32_t member : group.members)
    while (member != self && ranks[member].touching.load(std::memory_order_seq_cst))
      std::this_thread::yield();
  std::lock_guard lock(mutex);
  // A deadline and a disagreement concern everybody; other reasons are the failing rank's own.
  bool shared = abortStatus == SHARDRT_TIMEOUT || abortStatus == SHARDRT_MISMATCH;
  if (abortRank == self)
    throw Failure(abortStatus, abortReason);
  throw Failure(shared ? abortStatus : SHARDRT_ABORTED,
                activity.str() + ": given up because of rank " + std::to_string(abortRank) + ": " +
                    abortReason);
}

void LocalWorld::refuse(uint32_t rank, uint64_t run, const std::string &reason) {
  {
    std::lock_guard lock(mutex);
    ranks[rank].refusal = reason;
    ranks[rank].refusedRun.store(run, std::memory_order_release);
  }
  wakeAll();
}

void LocalWorld::leave(uint32_t rank) {
  ranks[rank].gone.store(true, std::memory_order_release);
  wakeAll();
}

void LocalWorld::wakeAll() {
  std::lock_guard lock(mutex);
  for (auto &[members, channel] : channels)
    channel->place.complete.wake();
}

} // namespace shardc::rt
