// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's end of a world of ranks: who is there, whether they agree, and giving up. What moves
// data is a transport that it hands out.
#ifndef SHARDC_RUNTIME_COMM_COMMUNICATOR_H
#define SHARDC_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/comm/Call.h"
#include "runtime/comm/Transport.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Futex.h"
#include "runtime/support/Memory.h"

#include <memory>

namespace shardc::rt {

/// Facts that must be equal on all ranks before they communicate: name and value, e.g.
/// {"artifact hash", "9f2c"}. Same names in the same order on all ranks.
using Identity = std::vector<std::pair<std::string, std::string>>;

/// What ranks meet for outside of collectives.
struct Topic {
  const char *name; ///< for messages, e.g. "the barrier"; of static life
  uint64_t run = 0; ///< number of the run that it belongs to; 0: of none
};

/// A time limit from now; very long ones are cut to thirty years.
Clock::time_point deadlineAfter(double seconds);
/// What is left of a time limit; 0 after it.
double secondsUntil(Clock::time_point deadline);

/// Functions that communicate are called by one thread of a rank at a time and throw Failure:
/// SHARDRT_TIMEOUT, SHARDRT_ABORTED or SHARDRT_MISMATCH, after which the communicator can only be
/// destroyed. abort, refuse, leave and notePosition may be called from any thread.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual uint32_t worldSize() const = 0;
  virtual uint32_t rank() const = 0;

  /// This rank's end of an ordered set of distinct ranks that contains it. Owned by the
  /// communicator; the same members give the same group. Does not communicate.
  virtual Group &group(std::span<const uint32_t> members) = 0;

  /// Gives every rank of the world what each of them passed, by rank.
  virtual std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                            Clock::time_point deadline) = 0;
  /// Called once by every rank, after the handshake and before the first collective: what
  /// collectives over these groups need and only all ranks together can make. All ranks pass the
  /// same groups in the same order, those outside a group too.
  virtual void connect(std::span<const shardrt_group> groups, Clock::time_point deadline) {}

  /// Compares facts over the whole world, for run number `run`; a mismatch names the ranks and the
  /// values.
  void handshake(const Identity &identity, uint64_t run, Clock::time_point deadline);
  void barrier(Clock::time_point deadline);

  /// Whether its ranks are processes, of which each has devices of its own.
  virtual bool betweenProcesses() const { return false; }
  /// For who waits for data that does not move by the host transport. Both cost next to nothing and
  /// never wait: whether the world was given up, and which of these members has left or will take
  /// no part in this run, and why; empty: none. Communicators that do not know say so.
  virtual bool givenUp() const { return false; }
  virtual std::string absent(const Group &group, uint64_t run) { return ""; }

  /// What moves data, in each of the forms that this communicator has; null: not in this one.
  /// Owned by the communicator.
  virtual HostTransport *hostTransport() { return nullptr; }
  virtual StreamTransport *streamTransport() { return nullptr; }

  /// Where operands should lie so that the others reach them without a copy; null: anywhere. The
  /// communicator outlives what is allocated there.
  virtual const Allocator *memory() { return nullptr; }
  /// What it has done so far, for the log; may be empty.
  virtual std::string summary() const { return ""; }

  /// Makes every communication of the world fail with this reason; the first one is kept.
  virtual void abort(shardrt_status status, const std::string &reason) noexcept = 0;
  /// Says that this rank will not take part in its run number `run` and why, so that others do not
  /// wait for it until their deadline.
  virtual void refuse(uint64_t run, const std::string &reason) noexcept = 0;
  /// Says that this rank will communicate no more: those who wait for it fail.
  virtual void leave() noexcept = 0;
  /// The op this rank is in (or null), for the others' messages about it. Called for every kernel.
  virtual void notePosition(const shardrt_op *op) noexcept = 0;
};

/// Who does the work of a collective between threads: each member its part, or the last to arrive
/// all of it. Automatic: whichever takes less time.
enum class Sharing : uint8_t { Automatic, Each, Last };

/// The ends of a world of `worldSize` threads of this process.
std::vector<std::unique_ptr<Communicator>> makeLocalWorld(uint32_t worldSize,
                                                          Sharing sharing = Sharing::Automatic);

/// One end of a world that the caller brings (shardrt_communicator_create). Throws Failure with all
/// that is wrong with the table.
std::unique_ptr<Communicator> makeTableCommunicator(const shardrt_communicator_functions &functions,
                                                    void *context, int32_t rank, int32_t worldSize);

/// "1.5 s".
std::string secondsText(double value);
/// "rank 3", "ranks 0, 1 and 3".
std::string rankList(std::span<const uint32_t> ranks);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_COMMUNICATOR_H
