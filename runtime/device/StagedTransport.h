// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a device by a transport that moves data in host memory: operands are copied down
// into pinned memory, and results up.
#ifndef SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H
#define SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H

#include "runtime/comm/Transport.h"
#include "runtime/device/Device.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace shardc::rt {

/// expect and finish are called by the thread that computes, the rest by the one that runs
/// collectives (Stream.h).
class StagedTransport final : public HostTransport {
public:
  /// `errorWord` is in the device's memory, and outlives it.
  StagedTransport(const Device &device, HostTransport &host, const void *errorWord);

  /// The call that is started next may begin when the stream has done what it has now.
  void expect(void *computeStream);
  /// Makes the stream wait for the results of the calls that are complete.
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

  const Device &device;
  HostTransport &host;
  const void *const errorWord;
  const DeviceObject stream, uploaded;
  DeviceObject pinned; ///< the error word, then operands
  size_t pinnedBytes = 0;
  CollectiveCall staged; ///< with operands in pinned memory
  std::mutex mutex;      ///< guards the two that follow
  std::deque<DeviceObject> expected;
  std::vector<DeviceObject> unused;
  std::atomic<uint64_t> failed{0};
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_STAGEDTRANSPORT_H
