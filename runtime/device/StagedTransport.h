// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a device by a transport that moves data in host memory: operands are copied down
// into pinned memory, and results up.
#ifndef SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H
#define SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

namespace shardc::rt {

/// expect and finish are called by the thread that computes, the rest by the one that runs
/// collectives (Stream.h).
class StagedTransport final : public HostTransport {
public:
  /// `errorWord` is in the device's memory, and outlives it. `host` is one of the communicator's.
  StagedTransport(const Device &device, HostTransport &host, const void *errorWord,
                  const Communicator &communicator);
  /// Called again and again while operands are waited for; throws where they will never come.
  void setLook(std::function<void()> called) { look = std::move(called); }
  /// Called when operands are computed, before anything is sent; throws if they are none.
  void setCheck(std::function<void(const CollectiveCall &)> called) { check = std::move(called); }

  /// The call that is started next may begin when the stream has done what it has now.
  void expect(void *computeStream);
  /// Makes the stream wait for the results of the calls that are complete, if there are any for
  /// which it was not made to wait before.
  void finish(void *computeStream);
  /// Before a run, when nothing is in flight.
  void reset();
  /// What kernels had written into the error word when a collective found that they had failed; 0:
  /// they have not. Nothing was sent then.
  uint64_t failedWord() const { return failed.load(std::memory_order_acquire); }

  void await(const CollectiveCall &call, Clock::time_point deadline) override;
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override;

private:
  size_t place(const CollectiveCall &call);
  /// Makes `staged` the call with operands in pinned memory.
  void stage(const CollectiveCall &call);

  const Device &device;
  HostTransport &host;
  const void *const errorWord;
  const Communicator &communicator;
  std::function<void()> look;
  std::function<void(const CollectiveCall &)> check;
  const DeviceObject stream, uploaded;
  DeviceObject pinned; ///< the error word, then operands
  size_t pinnedBytes = 0;
  CollectiveCall staged; ///< with operands in pinned memory
  std::mutex mutex;      ///< guards the two that follow
  std::deque<DeviceObject> expected;
  std::vector<DeviceObject> unused;
  std::atomic<uint64_t> failed{0};
  std::atomic<uint64_t> results{0}; ///< calls whose results have been put on the stream
  uint64_t finished = 0;            ///< of these, for which `finish` has made others wait
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H
