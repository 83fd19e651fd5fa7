// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the runtime needs from a communication library: one rank's end of a world of ranks.
#ifndef SHARDC_RUNTIME_COMM_COMMUNICATOR_H
#define SHARDC_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/comm/Call.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Futex.h"

#include <memory>

namespace shardc::rt {

/// Facts that must be equal on all ranks before they communicate: name and value, e.g.
/// {"artifact hash", "9f2c"}. Same names in the same order on all ranks.
using Identity = std::vector<std::pair<std::string, std::string>>;

/// A time limit from now; very long ones are cut to thirty years.
Clock::time_point deadlineAfter(double seconds);

/// Functions that communicate are called by one thread of a rank at a time and throw Failure:
/// SHARDRT_TIMEOUT, SHARDRT_ABORTED or SHARDRT_MISMATCH, after which the communicator can only be
/// destroyed. abort, refuse, leave and notePosition may be called from any thread.
class Communicator {
public:
  virtual ~Communicator() = default;

  virtual uint32_t worldSize() const = 0;
  virtual uint32_t rank() const = 0;

  /// This rank's end of an ordered set of distinct ranks that contains it. Owned by the
  /// communicator; the same members give the same group.
  virtual Group &group(std::span<const uint32_t> members) = 0;

  /// Compares facts over the whole world, for run number `run`; a mismatch names the ranks and the
  /// values.
  virtual void handshake(const Identity &identity, uint64_t run, Clock::time_point deadline) = 0;
  virtual void barrier(Clock::time_point deadline) = 0;

  /// Runs one collective from start to end. Returns the moment when all members had arrived. Throws
  /// only when no other rank will touch this rank's operands any more.
  virtual Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) = 0;

  /// Makes every communication of the world fail with this reason; the first one is kept.
  virtual void abort(shardrt_status status, const std::string &reason) noexcept = 0;
  /// Says that this rank will not take part in its run number `run` and why, so that others do not
  /// wait for it until their deadline.
  virtual void refuse(uint64_t run, const std::string &reason) noexcept = 0;
  /// Says that this rank will communicate no more: those who wait for it fail.
  virtual void leave() noexcept = 0;
  /// The op this rank is in (or null), for the others' messages about it. Costs one store.
  virtual void notePosition(const shardrt_op *op) noexcept = 0;
};

/// Who does the work of a collective between threads: each member its part, or the last to arrive
/// all of it. Automatic: whichever takes less time.
enum class Sharing : uint8_t { Automatic, Each, Last };

/// The ends of a world of `worldSize` threads of this process.
std::vector<std::unique_ptr<Communicator>> makeLocalWorld(uint32_t worldSize,
                                                          Sharing sharing = Sharing::Automatic);

/// "rank 3", "ranks 0, 1 and 3".
std::string rankList(std::span<const uint32_t> ranks);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_COMMUNICATOR_H
