// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/PeerWorld.h"

#include "runtime/include/shardrt_device_peer.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <map>
#include <thread>

namespace shardc::rt {

namespace {

struct KnownWorlds {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<PeerWorld>> worlds;
  uint64_t last = 0;
};
KnownWorlds &known() {
  static KnownWorlds all;
  return all;
}

} // namespace

std::shared_ptr<PeerWorld> PeerWorld::make(uint32_t ranks, uint64_t &number) {
  auto made = std::make_shared<PeerWorld>(ranks);
  KnownWorlds &all = known();
  std::lock_guard lock(all.mutex);
  std::erase_if(all.worlds, [](const auto &entry) { return entry.second.expired(); });
  number = ++all.last;
  all.worlds[number] = made;
  return made;
}

std::shared_ptr<PeerWorld> PeerWorld::find(uint64_t number) {
  KnownWorlds &all = known();
  std::lock_guard lock(all.mutex);
  auto found = all.worlds.find(number);
  return found == all.worlds.end() ? nullptr : found->second.lock();
}

/// A rank's device stays open while its seat is locked.
std::string PeerWorld::reachAll(uint32_t rank) {
  const Seat &mine = seats[rank];
  for (uint32_t other = 0; other < seats.size(); ++other) {
    if (other == rank)
      continue;
    std::lock_guard lock(seats[other].mutex);
    if (!seats[other].device)
      return "rank " + std::to_string(other) + " has left";
    char message[SHARDRT_MESSAGE_BYTES] = "";
    if (shardrt_status status =
            mine.plugin->peers->reach(mine.device, seats[other].device, message))
      return message[0] ? message : statusName(status);
  }
  return "";
}

void PeerWorld::setDevice(uint32_t rank, const shardrt_device_plugin *plugin, void *device) {
  std::lock_guard lock(seats[rank].mutex);
  seats[rank].plugin = plugin;
  seats[rank].device = device;
}

void PeerWorld::addEvent(uint32_t rank, void *event) {
  std::lock_guard lock(seats[rank].mutex);
  seats[rank].events.insert(event);
}

void PeerWorld::forgetEvents(uint32_t rank) {
  std::lock_guard lock(seats[rank].mutex);
  seats[rank].events.clear();
}

/// An event that cannot be asked for is one of a device that has failed, on which nothing runs.
bool PeerWorld::isQuiet(Seat &seat) {
  if (seat.inside.load(std::memory_order_seq_cst))
    return false;
  std::lock_guard lock(seat.mutex);
  return std::ranges::all_of(seat.events, [&](void *event) {
    char message[SHARDRT_MESSAGE_BYTES];
    int32_t done = 0;
    return seat.plugin->event_query(seat.device, event, &done, message) != SHARDRT_OK || done;
  });
}

void PeerWorld::waitForTakers(uint32_t rank, Clock::time_point deadline) {
  auto somebodyMayTake = [&] {
    if (seats[rank].offered.load() <= 0)
      return false;
    for (uint32_t other = 0; other < seats.size(); ++other)
      if (other != rank && seats[other].inside.load())
        return true;
    return false;
  };
  while (somebodyMayTake() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

bool PeerWorld::waitForOthers(uint32_t rank, Clock::time_point deadline) {
  for (uint32_t other = 0; other < seats.size(); ++other)
    while (other != rank && !isQuiet(seats[other])) {
      if (Clock::now() >= deadline)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  return true;
}

} // namespace shardc::rt
