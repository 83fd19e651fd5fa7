// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What communicators have in common whose ranks are processes: who is there, which collective is in
// flight, why waiting for the others is of no use any more, and the messages about it.
#ifndef SHARDC_RUNTIME_PROCESS_PROCESSCOMMUNICATOR_H
#define SHARDC_RUNTIME_PROCESS_PROCESSCOMMUNICATOR_H

#include "runtime/control/ControlPlane.h"

#include <map>
#include <mutex>

namespace shardc::rt {

/// A group with what this rank has done in it. Members do the collectives of a group in the same
/// order, so that a number says which one is meant.
class ProcessGroup : public Group {
public:
  ProcessGroup(std::vector<uint32_t> members, uint32_t position);

  const uint64_t key; ///< of the members in their order; the same on all ranks
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> ended{0}; ///< the others need nothing more of this rank
};

/// All but the data, which a derived class moves. It makes a Flight for each collective, and asks
/// it while it waits for others.
class ProcessCommunicator : public Communicator {
public:
  explicit ProcessCommunicator(std::shared_ptr<ControlPlane> plane);
  /// Leaves. A derived class calls `detach` first in its own destructor.
  ~ProcessCommunicator() override;

  uint32_t worldSize() const override { return plane->worldSize(); }
  uint32_t rank() const override { return plane->rank(); }
  Group &group(std::span<const uint32_t> members) final;
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) final;
  bool betweenProcesses() const final { return true; }
  bool givenUp() const final { return plane->givenUp(); }
  std::string absent(const Group &group, uint64_t run) final;
  void abort(shardrt_status status, const std::string &reason) noexcept final;
  void refuse(uint64_t run, const std::string &reason) noexcept final;
  void leave() noexcept final;
  void notePosition(const shardrt_op *op) noexcept final;

protected:
  class Flight;

  /// Leaves, and returns when the plane's thread calls nothing of this object any more. May be
  /// called again.
  void detach() noexcept;

  /// The ranks that do not answer and where those were last seen, in parentheses; empty if all
  /// answer. Takes half a second if some do not.
  std::string whoIsSilent() const;

  const std::shared_ptr<ControlPlane> plane;

private:
  /// What the plane's thread calls, for as long as it may.
  struct Listener {
    std::mutex mutex; ///< taken before that of the communicator
    ProcessCommunicator *self = nullptr;
  };

  std::string answer(std::string_view question);
  std::string place() const;
  std::string predicate() const;
  std::string whereIs(uint32_t rank, const std::optional<std::string> &answer) const;
  std::string progress();

  const std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  std::atomic<const shardrt_op *> op{nullptr};
  std::atomic<uint32_t> changes{1}; ///< of what the plane knows
  /// Nobody had left or refused the run when there were so many changes.
  uint32_t quietChanges = 0;
  uint64_t quietRun = 0;
  /// The same of `absent`.
  uint32_t presentChanges = 0;
  uint64_t presentRun = 0;
  uint64_t exchangesEnded = 0; ///< of whoever communicates

  /// Guards what follows. Who holds it calls nothing of the plane.
  mutable std::mutex mutex;
  std::map<std::vector<uint32_t>, std::unique_ptr<ProcessGroup>> groups;
  const shardrt_collective *collective = nullptr; ///< in flight
  const char *topic = nullptr;                    ///< of an exchange
  uint64_t exchangesBegun = 0;
  std::atomic<bool> hasLeft{false};
};

/// A collective in which this rank takes part, from its begin to its end or failure. Used by the
/// thread that runs the collective.
class ProcessCommunicator::Flight {
public:
  /// Throws Failure if the world was given up.
  Flight(ProcessCommunicator &communicator, const CollectiveCall &call, Clock::time_point deadline);
  ~Flight();
  Flight(const Flight &) = delete;

  /// This rank has done its part: it may leave.
  void done() { group.ended.store(sequence, std::memory_order_release); }

  /// Whether waiting is of no use any more: `fail` says why. Costs two loads and a look at the
  /// clock most of the time. After a second it asks the other members whether they can still come.
  bool mustStop();
  /// Gives the world up if it is not yet, and throws why: what made mustStop true, or else
  /// `otherwise`, which may be what a library said about a rank that has gone. Waits a moment for
  /// the plane to find out, then.
  [[noreturn]] void fail(shardrt_status otherwise = SHARDRT_INTERNAL,
                         const std::string &reason = "it was stopped without a reason");
  /// Members disagree: this is the reason, whatever others say.
  [[noreturn]] void disagree(const std::string &how);

private:
  bool cannotCome();
  bool isLost();
  [[noreturn]] void raise(shardrt_status status, const std::string &reason);
  [[noreturn]] void raiseGivenUp();
  void awaitSpeaker();
  std::string lateness();
  std::string question() const;

  ProcessCommunicator &communicator;
  const CollectiveCall &call;
  ProcessGroup &group;
  const Clock::time_point begin, deadline;
  const uint64_t sequence;
  Clock::time_point nextQuestion;
  std::chrono::seconds patience{1};
  std::optional<Failure> found;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_PROCESS_PROCESSCOMMUNICATOR_H
