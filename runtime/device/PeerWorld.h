// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the ranks of a world of threads share while their devices read each other's memory, so that
// a rank that fails leaves only when nobody uses its memory any more.
#ifndef SHARDC_RUNTIME_DEVICE_PEERWORLD_H
#define SHARDC_RUNTIME_DEVICE_PEERWORLD_H

#include "runtime/include/shardrt_device.h"
#include "runtime/support/Futex.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace shardc::rt {

class PeerWorld {
public:
  explicit PeerWorld(uint32_t ranks) : seats(ranks) {}

  /// A rank comes to a collective, and may put work on other ranks' memory until it has left.
  void enter(uint32_t rank) { seats[rank].inside.store(true, std::memory_order_seq_cst); }
  void leave(uint32_t rank) { seats[rank].inside.store(false, std::memory_order_seq_cst); }

  /// An event behind what a rank has put on others' memory; it lives until the rank has forgotten
  /// it.
  void addEvent(uint32_t rank, void *event);
  void forgetEvents(uint32_t rank);

  /// A rank's event is there for so many others; each of them takes it once, unless it fails.
  void offer(uint32_t rank, uint32_t others) { seats[rank].offered.fetch_add(int32_t(others)); }
  void take(uint32_t rank) { seats[rank].offered.fetch_sub(1); }
  /// Waits, on the host, until all others have taken what this rank has offered, or have left.
  void waitForTakers(uint32_t rank, Clock::time_point deadline);

  /// Waits, on the host, until no other rank is in a collective, and what they have enqueued is
  /// done: after a failure, in which every rank leaves soon. Returns whether that was so before the
  /// deadline.
  bool waitForOthers(uint32_t rank, Clock::time_point deadline);

  /// The device of a rank, whose the events are; null: it has left.
  void setDevice(uint32_t rank, const shardrt_device_plugin *plugin, void *device);
  /// Makes the memory of all ranks' devices usable by kernels of this rank's. Returns why not, or
  /// nothing.
  std::string reachAll(uint32_t rank);

  /// A new world that threads of this process find by a number, as long as it lives.
  static std::shared_ptr<PeerWorld> make(uint32_t ranks, uint64_t &number);
  static std::shared_ptr<PeerWorld> find(uint64_t number);

private:
  struct Seat {
    std::atomic<bool> inside{false};
    std::atomic<int32_t> offered{0};
    std::mutex mutex; ///< guards the rest
    const shardrt_device_plugin *plugin = nullptr;
    void *device = nullptr;
    std::set<void *> events;
  };
  bool isQuiet(Seat &seat);
  std::deque<Seat> seats;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_PEERWORLD_H
