// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/LocalWorld.h"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace shardc::rt {

namespace {

/// How long a waiter sleeps before it looks again whether somebody left or gave up.
constexpr std::chrono::milliseconds napLimit(20);

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", value);
  return text;
}

} // namespace

LocalChannel &LocalWorld::channel(const std::vector<uint32_t> &members) {
  std::lock_guard lock(mutex);
  std::unique_ptr<LocalChannel> &entry = channels[members];
  if (!entry)
    entry = std::make_unique<LocalChannel>(members);
  return *entry;
}

std::vector<uint32_t> LocalWorld::missing(const LocalChannel &channel, uint64_t phase) const {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < channel.members.size(); ++i)
    if (channel.slots[i].phase.load(std::memory_order_acquire) < phase)
      out.push_back(channel.members[i]);
  return out;
}

std::string LocalWorld::whereIs(uint32_t rank) {
  const RankState &state = ranks[rank];
  std::string name = "rank " + std::to_string(rank);
  if (state.gone.load(std::memory_order_acquire))
    return name + " has left";
  if (const shardrt_collective *c = state.collective.load(std::memory_order_relaxed))
    return name + " is in " + describe(*c);
  const shardrt_op *op = state.op.load(std::memory_order_relaxed);
  if (!op)
    return name + " is not running";
  std::string text = name + " was last seen in " + (op->name ? op->name : "an unnamed op");
  return op->location && *op->location ? text + " (" + op->location + ")" : text;
}

void LocalWorld::meet(LocalChannel &channel, uint32_t position, uint64_t phase,
                      const Activity &activity, Clock::time_point deadline,
                      const std::function<void()> &last) {
  uint32_t rank = channel.members[position];
  Clock::time_point start = Clock::now();
  channel.slots[position].phase.store(phase, std::memory_order_release);
  // Must be read before arriving: afterwards the phase may be complete at any moment.
  uint32_t seen = channel.complete.load();
  // Every arrival releases this member's slot and acquires those of the members before it; the last
  // one passes all of them on through `complete`.
  if (channel.arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == channel.members.size()) {
    channel.arrivals.store(0, std::memory_order_relaxed);
    channel.allArrived = Clock::now();
    channel.done = false;
    if (last)
      last();
    channel.complete.advance();
    return;
  }
  Spin awake = spin;
  while (!channel.complete.wait(
      seen, awake, std::min<std::chrono::nanoseconds>(napLimit, deadline - Clock::now()))) {
    awake = {};
    if (aborted.load(std::memory_order_seq_cst))
      failAborted(channel, rank, activity);
    std::vector<uint32_t> absent = missing(channel, phase);
    for (uint32_t other : absent) {
      if (ranks[other].gone.load(std::memory_order_acquire))
        fail(channel, rank, activity, SHARDRT_ABORTED,
             "rank " + std::to_string(other) + " has left and cannot take part");
      if (activity.run != 0 &&
          ranks[other].refusedRun.load(std::memory_order_acquire) >= activity.run) {
        std::unique_lock lock(mutex);
        std::string refusal = ranks[other].refusal;
        lock.unlock();
        fail(channel, rank, activity, SHARDRT_ABORTED,
             "rank " + std::to_string(other) + " did not start this run: " + refusal);
      }
    }
    if (Clock::now() < deadline || absent.empty())
      continue;
    std::vector<uint32_t> present;
    for (uint32_t member : channel.members)
      if (std::find(absent.begin(), absent.end(), member) == absent.end())
        present.push_back(member);
    std::string reason = "it did not complete within " +
                         seconds(std::chrono::duration<double>(deadline - start).count()) +
                         ": missing " + rankList(absent) + ", arrived " + rankList(present) + " (";
    for (size_t i = 0; i < absent.size(); ++i)
      reason += (i ? "; " : "") + whereIs(absent[i]);
    fail(channel, rank, activity, SHARDRT_TIMEOUT, reason + ")");
  }
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

void LocalWorld::fail(LocalChannel &channel, uint32_t rank, const Activity &activity,
                      shardrt_status status, const std::string &reason) {
  abort(rank, status, activity.str() + ": " + reason);
  failAborted(channel, rank, activity);
}

void LocalWorld::failAborted(LocalChannel &channel, uint32_t rank, const Activity &activity) {
  for (uint32_t member : channel.members)
    while (member != rank && ranks[member].touching.load(std::memory_order_seq_cst))
      std::this_thread::yield();
  std::lock_guard lock(mutex);
  // A deadline and a disagreement concern everybody; other reasons are the failing rank's own.
  bool shared = abortStatus == SHARDRT_TIMEOUT || abortStatus == SHARDRT_MISMATCH;
  if (abortRank == rank)
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
    channel->complete.wake();
}

} // namespace shardc::rt
