// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of a program on a device: enqueued on streams of the device where the
// communicator can do that, else run by the host.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H
#define SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H

#include "runtime/comm/Stream.h"
#include "runtime/device/DeviceTimeline.h"
#include "runtime/device/StagedTransport.h"

namespace shardc::rt {

/// Used by the thread that computes. Functions throw Failure.
class DeviceCollectives {
public:
  virtual ~DeviceCollectives() = default;

  /// Before a run, when nothing is in flight.
  virtual void begin() = 0;
  /// Begins when the compute stream has done what it has now. `group` is null for a rank that takes
  /// no part.
  virtual uint64_t start(const shardrt_collective &collective, Group *group, uint64_t run,
                         const shardrt_collective_tensor *tensors) = 0;
  /// Makes the compute stream wait; each token once.
  virtual void wait(uint64_t token) = 0;
  virtual void runNow(const shardrt_collective &collective, Group *group, uint64_t run,
                      const shardrt_collective_tensor *tensors) {
    wait(start(collective, group, run, tensors));
  }
  /// Makes the compute stream wait for everything that was started.
  virtual void join() = 0;
  /// Waits on the host for an event of the compute stream, and for what it depends on; throws where
  /// that will never come.
  virtual void waitFor(const DeviceObject &event) = 0;

  /// Whether what start and wait do with a call can become a part of a graph, and whether that
  /// holds for all since `begin`.
  virtual bool capturable(const shardrt_collective &collective, const Group &group,
                          const shardrt_collective_tensor *tensors) const = 0;
  virtual bool allCapturable() const = 0;
  /// So many kernels have been put on the compute stream in this run, which is not captured: waits
  /// where there would be too many, so that the device's own queue does not make the host wait.
  virtual void noteLaunches(size_t) {}
  /// What is started now is captured, and only noted for flight records when it is replayed.
  virtual void setCapturing(bool) {}
  /// The calls of the run that was captured, and: a graph with these is launched now, in that run.
  virtual std::vector<CollectiveCall> captured() { return {}; }
  virtual void replay(std::vector<CollectiveCall> &, uint64_t) { begin(); }

  /// What kernels had recorded when a collective found that they had failed, or 0.
  virtual uint64_t failedWord() const { return 0; }
  /// After a failure, when the world was told.
  virtual void giveUp() = 0;
  virtual std::string flightRecord() const = 0;
  virtual void recordFlight(FlightRecord &record) const = 0;
};

/// Through the host, by a communicator of any kind.
class StagedCollectives final : public DeviceCollectives {
public:
  StagedCollectives(const Device &device, void *compute, const void *errorWord,
                    Communicator &communicator, HostTransport &host, EventLog &events,
                    const CommStream::Options &options)
      : device(device), compute(compute), transport(device, host, errorWord),
        comm(communicator, transport, events, options), events(events) {}

  void begin() override {
    transport.reset();
    used = false;
  }
  uint64_t start(const shardrt_collective &collective, Group *group, uint64_t run,
                 const shardrt_collective_tensor *tensors) override;
  void wait(uint64_t token) override;
  void runNow(const shardrt_collective &collective, Group *group, uint64_t run,
              const shardrt_collective_tensor *tensors) override;
  void join() override;
  void waitFor(const DeviceObject &event) override { device.synchronize(event); }
  bool capturable(const shardrt_collective &, const Group &,
                  const shardrt_collective_tensor *) const override {
    return false;
  }
  bool allCapturable() const override { return !used; }
  uint64_t failedWord() const override { return transport.failedWord(); }
  void giveUp() override { comm.drain(); }
  std::string flightRecord() const override { return comm.flightRecord(); }
  void recordFlight(FlightRecord &record) const override { comm.recordFlight(record); }

private:
  template <typename Wait> void waiting(const shardrt_collective *collective, Wait wait);

  const Device &device;
  void *const compute;
  StagedTransport transport;
  CommStream comm;
  EventLog &events;
  bool used = false; ///< since `begin`
};

/// On streams of the device, one for each group: the host waits for none. What the transport does
/// not take goes through the host, where it is started.
class StreamCollectives final : public DeviceCollectives {
public:
  StreamCollectives(const Device &device, void *compute, StreamTransport &transport,
                    DeviceTimeline &timeline, double timeout,
                    std::unique_ptr<StagedCollectives> staged)
      : device(device), compute(compute), transport(transport), timeline(timeline),
        timeout(timeout), staged(std::move(staged)), ready(device.makeEvent()) {}

  void begin() override;
  uint64_t start(const shardrt_collective &collective, Group *group, uint64_t run,
                 const shardrt_collective_tensor *tensors) override;
  void wait(uint64_t token) override;
  void join() override;
  void waitFor(const DeviceObject &event) override;
  bool capturable(const shardrt_collective &collective, const Group &group,
                  const shardrt_collective_tensor *tensors) const override;
  bool allCapturable() const override { return !hasCounts && staged->allCapturable(); }
  void noteLaunches(size_t launches) override;
  uint64_t failedWord() const override { return staged->failedWord(); }
  void setCapturing(bool now) override { capturing = now; }
  std::vector<CollectiveCall> captured() override;
  void replay(std::vector<CollectiveCall> &calls, uint64_t run) override;
  void giveUp() override;
  std::string flightRecord() const override;
  void recordFlight(FlightRecord &record) const override;

private:
  struct Operation {
    CollectiveCall call;
    DeviceObject done;
    bool waited = false;
  };
  void *streamOf(const Group *group);
  /// Polls until the event has happened.
  void pollUntil(const DeviceObject &event);
  /// The calls in flight, in order.
  size_t inFlight() const { return replayed ? replayed->size() : count; }
  const CollectiveCall &callOf(size_t i) const {
    return replayed ? (*replayed)[i] : operations[i]->call;
  }

  const Device &device;
  void *const compute;
  StreamTransport &transport;
  DeviceTimeline &timeline;
  const double timeout;
  const std::unique_ptr<StagedCollectives> staged;
  const DeviceObject ready; ///< a wait takes what it was when the wait was enqueued
  std::vector<std::pair<const Group *, DeviceObject>> streams;
  std::vector<std::unique_ptr<Operation>> operations; ///< the first `count` are of this run
  size_t count = 0;
  const std::vector<CollectiveCall> *replayed = nullptr;
  size_t oldest = 0;      ///< in flight, as far as is known
  bool hasCounts = false; ///< since `begin`: calls that members compare each time
  DeviceObject behind[2]; ///< of the compute stream, behind every few hundred launches
  FlightRecorder recorder;
  uint64_t firstRecord = 0; ///< of this run
  bool capturing = false;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H
