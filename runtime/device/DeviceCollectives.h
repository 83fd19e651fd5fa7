// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The collectives of a program on a device: enqueued on streams of the device where the
// communicator can do that, else run by the host.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H
#define SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H

#include "runtime/comm/Stream.h"
#include "runtime/device/DeviceTimeline.h"
#include "runtime/device/StagedTransport.h"
#include "runtime/device/StepCache.h"

#include <functional>
#include <optional>

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
  /// that will never come. At the end of a run, which everything that was started ends with.
  virtual void waitFor(const DeviceObject &event) = 0;
  /// The same while the run goes on.
  virtual void waitInside(const DeviceObject &event) = 0;
  /// Outside of a program, where nothing is in flight: it is complete when this returns, and what
  /// is enqueued then, on any stream, comes after it.
  virtual void runOutside(const shardrt_collective &collective, Group *group, uint64_t run,
                          const shardrt_collective_tensor *tensors) = 0;

  /// Whether what start and wait do with a call can become a part of a graph, and whether that
  /// holds for all since `begin`.
  virtual bool capturable(const shardrt_collective &collective, const Group &group,
                          const shardrt_collective_tensor *tensors) const = 0;
  virtual bool allCapturable() const = 0;
  /// So many things more are put on the compute stream: waits where there would be too many, so
  /// that the device's own queue does not make the host wait.
  virtual void noteWork(size_t) {}
  /// The host waits for something on the compute stream by other means: throws where that will
  /// never come.
  virtual void look() {}
  /// What is started now is captured, and only noted for flight records when it is replayed. Called
  /// before the capture begins.
  virtual void setCapturing(bool) {}
  /// The calls of the run that was captured, and: a graph with these is launched now, in that run.
  virtual CapturedCollectives captured() { return {}; }
  virtual void replay(CapturedCollectives &, uint64_t) { begin(); }

  /// What kernels had recorded when a collective found that they had failed, or 0.
  virtual uint64_t failedWord() const { return 0; }
  /// After a failure, when the world was told. Work on all streams is waited for until then.
  virtual void giveUp(Clock::time_point until) = 0;
  virtual std::string flightRecord() const = 0;
  virtual void recordFlight(FlightRecord &record) const = 0;
};

/// Through the host, by a communicator of any kind.
class StagedCollectives final : public DeviceCollectives {
public:
  StagedCollectives(const Device &device, void *compute, const void *errorWord,
                    Communicator &communicator, HostTransport &host, EventLog &events,
                    const CommStream::Options &options)
      : device(device), compute(compute), transport(device, host, errorWord, communicator),
        comm(communicator, transport, events, options), events(events) {}

  /// Asked while the host waits for operands: they may depend on what is on other streams.
  void setLook(std::function<void()> look) { transport.setLook(std::move(look)); }
  /// Asked before operands are sent: others' data may be in them.
  void setCheck(std::function<void(const CollectiveCall &)> check) {
    transport.setCheck(std::move(check));
  }

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
  void waitInside(const DeviceObject &event) override { device.synchronize(event); }
  void runOutside(const shardrt_collective &collective, Group *group, uint64_t run,
                  const shardrt_collective_tensor *tensors) override;
  bool capturable(const shardrt_collective &, const Group &,
                  const shardrt_collective_tensor *) const override {
    return false;
  }
  bool allCapturable() const override { return !used; }
  uint64_t failedWord() const override { return transport.failedWord(); }
  void giveUp(Clock::time_point) override { comm.drain(); }
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
  /// `one`: a byte of the device that is 1.
  StreamCollectives(const Device &device, void *compute, StreamTransport &transport,
                    DeviceTimeline &timeline, double timeout, const void *one,
                    std::unique_ptr<StagedCollectives> staged);

  void begin() override;
  uint64_t start(const shardrt_collective &collective, Group *group, uint64_t run,
                 const shardrt_collective_tensor *tensors) override;
  void wait(uint64_t token) override;
  void join() override;
  void waitFor(const DeviceObject &event) override;
  void waitInside(const DeviceObject &event) override;
  void runOutside(const shardrt_collective &collective, Group *group, uint64_t run,
                  const shardrt_collective_tensor *tensors) override;
  bool capturable(const shardrt_collective &collective, const Group &group,
                  const shardrt_collective_tensor *tensors) const override;
  bool allCapturable() const override {
    return !hasCounts && (count == 0 || transport.capturable()) && staged->allCapturable();
  }
  void noteWork(size_t pieces) override;
  void look() override;
  uint64_t failedWord() const override { return staged->failedWord(); }
  void setCapturing(bool now) override;
  CapturedCollectives captured() override;
  void replay(CapturedCollectives &graph, uint64_t run) override;
  void giveUp(Clock::time_point until) override;
  std::string flightRecord() const override;
  void recordFlight(FlightRecord &record) const override;

private:
  struct Operation {
    CollectiveCall call;
    DeviceObject began, done;
    size_t before = 0; ///< pieces of work of the collectives before it in this run
    bool waited = false;
  };
  void *streamOf(const Group *group);
  /// Asks until the event has happened; what is asked meanwhile may throw.
  void pollUntil(const DeviceObject &event, const std::function<void()> &ask);
  void pollUntil(const DeviceObject &event);
  /// Waits where collectives with so many pieces more would fill the queues of their streams.
  void makeRoom(size_t more);
  /// The calls in flight, in order.
  size_t inFlight() const { return replayed ? replayed->calls.size() : count; }
  const CollectiveCall &callOf(size_t i) const {
    return replayed ? replayed->calls[i] : operations[i]->call;
  }
  bool hasBegun(size_t i) const;
  bool hasEnded(size_t i) const;
  /// In a capture: the graph writes mark number `i` where the stream is now.
  void mark(size_t i, void *stream);

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
  const CapturedCollectives *replayed = nullptr;
  size_t oldest = 0; ///< in flight, as far as is known
  /// Of the oldest, once it was seen to have begun: its operands are computed.
  std::optional<Clock::time_point> deadline;
  bool hasCounts = false; ///< since `begin`: calls that members compare each time
  DeviceObject behind[2]; ///< of the compute stream, behind every so many pieces of work
  size_t pieces = 0;      ///< on it since the last of them
  size_t enqueued = 0;    ///< pieces of work of collectives, since `begin`
  size_t recorded = 0;    ///< of them, since `begin`
  const void *const one;
  DeviceObject marks; ///< of the graph that is captured
  size_t marksRoom = 0;
  FlightRecorder recorder;
  uint64_t firstRecord = 0; ///< of this run
  bool capturing = false;
  bool computed = false; ///< the host knows that operands are
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICECOLLECTIVES_H
