// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What moves the data of collectives. A communicator hands out the forms that it has, and an
// executor takes the one that fits where its programs keep their data.
#ifndef SHARDC_RUNTIME_COMM_TRANSPORT_H
#define SHARDC_RUNTIME_COMM_TRANSPORT_H

#include "runtime/comm/Call.h"
#include "runtime/support/Futex.h"

#include <string_view>

namespace shardc::rt {

/// Runs collectives whose operands are in host memory. Called by one thread of a rank at a time.
class HostTransport {
public:
  virtual ~HostTransport() = default;

  /// Returns when the operands of the call that runs next are computed, for those who get them from
  /// elsewhere. Throws Failure if they never are.
  virtual void await(const CollectiveCall &call, Clock::time_point deadline) {}
  /// Runs one collective from start to end. Returns the moment when all members had arrived, or the
  /// end where that is not known. Throws Failure (SHARDRT_TIMEOUT, SHARDRT_ABORTED or
  /// SHARDRT_MISMATCH) only when no other rank will touch this rank's operands any more, or they
  /// are in Communicator::memory(), which must not be used any more then; the communicator can only
  /// be destroyed.
  virtual Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) = 0;
};

/// Enqueues collectives on streams of a device, in whose memory their operands are. Called by one
/// thread of a rank at a time, which never waits for data here: it waits for the stream, by the
/// means of the device, and polls.
class StreamTransport {
public:
  virtual ~StreamTransport() = default;

  /// The kind of target (`target.kind` of the manifest) whose executor's streams it takes.
  virtual std::string_view device() const = 0;

  /// By which means, for the log.
  virtual std::string way() const { return std::string(device()); }

  /// Whether it does this collective with the meaning that shardrt.h gives it, for groups of this
  /// size; the same on all ranks. What it does not do goes through the host (HostTransport).
  virtual bool takes(const shardrt_collective &collective, uint32_t members) const { return true; }

  /// Whether what `enqueue` does can become a part of a graph of this rank's.
  virtual bool capturable() const { return true; }

  /// Enqueues one collective behind what the stream has, so that it begins when its operands are
  /// computed and what is enqueued after it sees its results. `stream` is the device's own handle
  /// (a cudaStream_t, say). The operands stay until the collective is complete; the call may be
  /// changed as soon as the function has returned. Throws Failure if it cannot be enqueued. Where
  /// members have not yet compared that they mean the same call, it waits for them until the
  /// deadline, though never for the stream.
  virtual void enqueue(const CollectiveCall &call, void *stream, Clock::time_point deadline) = 0;

  /// How many pieces of work `enqueue` puts on the stream at most, as a device's queue counts them.
  virtual size_t pieces(const CollectiveCall &call) const { return 1; }

  /// Before a run, when nothing is in flight.
  virtual void begin() {}
  /// What follows on `stream` sees the results of this call, which was enqueued in this run on
  /// another one.
  virtual void joined(const CollectiveCall &call, void *stream) {}

  /// Called now and then by an executor that waits for a stream: throws Failure once the world was
  /// given up, something that was enqueued has failed, or the deadline has passed. `oldest` is the
  /// first collective that is not known to be complete, which the message names. No other rank
  /// touches this rank's operands any more then.
  virtual void poll(const CollectiveCall &oldest, Clock::time_point deadline) = 0;

  /// Called when everything that was enqueued in a run is done, of which `last` was the last:
  /// throws Failure if its results are none.
  virtual void finish(const CollectiveCall &last) { poll(last, Clock::time_point::max()); }

  /// Where kernels of this rank's device write that they have failed (not 0), and where the host
  /// finds it when everything is done: for transports that tell others, who must not take what was
  /// computed after that for a result.
  virtual void watch(const void *errorWord, const uint64_t *copied) {}

  /// Memory of the device in which operands will lie, for faster ways; released after `forget`.
  virtual void remember(void *memory, size_t bytes) {}
  virtual void forget(void *memory) {}

  /// After a failure, when the world was told: ends what is in flight, so that streams come to
  /// their end. Nothing may be enqueued any more. May be called again, and after poll has thrown.
  virtual void giveUp() noexcept {}
  /// After that: others have put work on this rank's memory which has not ended, so that nothing
  /// may be released.
  virtual bool isStuck() const { return false; }
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_TRANSPORT_H
