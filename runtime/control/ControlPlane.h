// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What ranks that are processes tell each other beside the data of collectives: who is there, facts
// that must agree, giving up, and where each of them is. Data goes another way (Transport.h).
#ifndef SHARDC_RUNTIME_CONTROL_CONTROLPLANE_H
#define SHARDC_RUNTIME_CONTROL_CONTROLPLANE_H

#include "runtime/comm/Communicator.h"

#include <functional>
#include <optional>

namespace shardc::rt {

/// One process of the world, as it introduced itself.
struct Peer {
  std::string host;    ///< name of its host, for messages
  std::string machine; ///< equal for ranks that can share memory with each other
  std::string address; ///< where other ranks reach it: an IP address without port
  int64_t pid = 0;     ///< on its host

  /// "rank 3 (pid 4711 on node7)".
  std::string str(uint32_t rank) const;
};

/// This rank's end. exchange and ask are called by one thread at a time; the other functions by any
/// thread at any time. The plane has a thread of its own, which answers the others even while this
/// rank computes.
class ControlPlane {
public:
  virtual ~ControlPlane() = default;

  virtual uint32_t worldSize() const = 0;
  virtual uint32_t rank() const = 0;
  /// By rank.
  virtual const std::vector<Peer> &peers() const = 0;

  /// Gives every rank of the world what each of them passed, by rank. Throws Failure
  /// (SHARDRT_TIMEOUT, SHARDRT_ABORTED or SHARDRT_MISMATCH), after which the world is given up. The
  /// cost grows with the logarithm of the world's size, beside that of the bytes.
  virtual std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                            Clock::time_point deadline) = 0;

  /// Gives the world up on all ranks; the first reason that a rank hears is kept there.
  virtual void abort(shardrt_status status, const std::string &reason) noexcept = 0;
  /// Says that this rank takes no part in its run number `run`, and why.
  virtual void refuse(uint64_t run, const std::string &reason) noexcept = 0;
  /// Says that this rank will communicate no more. `account` is handed to others with it: what this
  /// rank had done by then. It is sent once, and before the connections are closed: a rank whose
  /// connections close without it has died, and the world is given up at once.
  virtual void leave(std::string_view account) noexcept = 0;

  /// Whether the world was given up; costs one load.
  virtual bool givenUp() const noexcept = 0;
  /// Status and reason, with the rank that gave it up; nothing while givenUp is false.
  virtual std::optional<Failure> failure() const = 0;
  /// What a rank said in leave; nothing while it has not left.
  virtual std::optional<std::string> left(uint32_t rank) const = 0;
  /// Why a rank refused this run; nothing if it did not.
  virtual std::optional<std::string> refused(uint32_t rank, uint64_t run) const = 0;
  /// Called, by the plane's thread, whenever an answer of the four functions above may have
  /// changed. Those who wait for something else are woken by it. Null: nobody.
  virtual void onChange(std::function<void()> wake) = 0;

  /// How this rank answers `ask`, by the plane's thread: `question` is what was asked; empty, it
  /// says in a few words where the rank is ("in X", "not running"), which others are told a few
  /// times a minute.
  using Answer = std::function<std::string(std::string_view question)>;
  virtual void answerWith(Answer answer) = 0;
  /// What each rank answers, by rank; nothing for one that does not answer in `patience`. Never
  /// throws, and also works when the world was given up.
  virtual std::vector<std::optional<std::string>> ask(std::string_view question,
                                                      std::chrono::nanoseconds patience) = 0;
  /// Where a rank said last that it was (an answer to the empty question), and how long ago.
  struct LastSeen {
    std::string where;
    std::chrono::nanoseconds ago{0};
  };
  virtual std::optional<LastSeen> lastSeen(uint32_t rank) const = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_CONTROLPLANE_H
