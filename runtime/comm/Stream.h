// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order of one rank's collectives, and the thread that makes them progress while it computes.
#ifndef SHARDC_RUNTIME_COMM_STREAM_H
#define SHARDC_RUNTIME_COMM_STREAM_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/FlightRecorder.h"
#include "runtime/comm/Link.h"
#include "runtime/support/Events.h"

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace shardc::rt {

/// Collectives run strictly in the order in which they were started, on whichever thread gets to
/// them first: the communication thread, or the one that waits. So a collective that is waited for
/// right away costs no change of thread, and one that is not makes progress at once.
///
/// Over emulated links, each group has a link of its own: a collective takes the time of its link
/// from when its members have met and the one before it in its group has ended, whatever other
/// groups do meanwhile. Its data has moved by then; the wait lasts until that time.
///
/// start, wait, runNow and drain are called by one thread.
class CommStream {
public:
  struct Options {
    double timeout = 600;
    bool thread = true;
    Links links;

    /// As the configuration and the environment ask for them.
    static Options of(const shardrt_config &config, const shardrt_program &program);
  };
  /// `transport` is one of the communicator's.
  CommStream(Communicator &communicator, HostTransport &transport, EventLog &events,
             Options options);
  /// Everything must have been drained.
  ~CommStream();

  /// Copies what `tensors` points to. `group` is null for a rank that takes no part. Never throws:
  /// problems are reported by wait.
  uint64_t start(const shardrt_collective &collective, Group *group, uint64_t run,
                 const shardrt_collective_tensor *tensors) noexcept;
  /// Throws Failure.
  void wait(uint64_t token);
  /// The collective in flight with this token, or null.
  const shardrt_collective *collectiveOf(uint64_t token) const;
  void runNow(const shardrt_collective &collective, Group *group, uint64_t run,
              const shardrt_collective_tensor *tensors);
  /// Waits for everything that was started; tokens become invalid. Returns the first failure.
  std::optional<Failure> drain();

  /// Only while nothing is in flight.
  std::string flightRecord() const { return recorder.dump(); }
  void recordFlight(FlightRecord &record) const { recorder.fill(record); }

private:
  struct Operation {
    const shardrt_collective *collective = nullptr;
    CollectiveCall call;
    std::optional<Failure> failure;
    Clock::time_point end;         ///< over an emulated link; may be after `done`
    std::atomic<bool> done{false}; ///< its data has moved
    uint32_t generation = 0;
    bool live = false; ///< started and not yet waited for
  };

  Operation *find(uint64_t token) const;
  Operation &allocate(uint32_t &index);
  void release(uint32_t index);
  void finishOperation(uint32_t index);
  /// Of a collective whose members have met at `arrived`.
  void occupyLink(const CollectiveCall &call, Clock::time_point arrived, Clock::time_point &begin,
                  Clock::time_point &end);
  void execute(Operation &operation);
  bool runNext();
  void threadMain();

  Communicator &communicator;
  HostTransport &transport;
  EventLog &events;
  const Options options;
  const Spin spin;
  FlightRecorder recorder; ///< guarded by executing
  /// When each group's emulated link is free again; guarded by executing.
  std::map<const Group *, Clock::time_point> linkFree;

  std::vector<std::unique_ptr<Operation>> operations; ///< by index of token
  std::vector<uint32_t> unused;

  std::mutex queueMutex;
  std::deque<Operation *> queue; ///< guarded by queueMutex
  std::mutex executing;          ///< the right to run what is first in the queue
  Signal work;                   ///< advances when the queue has grown
  Signal completed;              ///< advances when an operation is done
  std::atomic<bool> stopping{false};
  std::thread thread;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_STREAM_H
