// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a rank knows of its world: written by its plane's thread, read by all threads.
#ifndef SHARDC_RUNTIME_CONTROL_KNOWLEDGE_H
#define SHARDC_RUNTIME_CONTROL_KNOWLEDGE_H

#include "runtime/control/Message.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace shardc::rt {

class Knowledge {
public:
  Knowledge(uint32_t self, uint32_t worldSize) : self(self), ranks(worldSize) {}

  // Each returns whether it was news.
  bool learn(const GiveUp &giveUp);
  bool learn(const Death &death);
  bool learn(const Leave &leave);
  bool learn(const Refusal &refusal);
  bool learn(const Sighting &sighting); ///< news: the first one of the rank

  bool givenUp() const { return aborted.load(std::memory_order_acquire); }
  std::optional<Failure> failure() const;
  /// As `failure`, for what this rank was doing.
  Failure failureOf(const std::string &activity) const;
  std::optional<std::string> left(uint32_t rank) const;
  std::optional<std::string> refused(uint32_t rank, uint64_t run) const;
  std::optional<ControlPlane::LastSeen> lastSeen(uint32_t rank) const;
  /// Whether it has left or died.
  bool gone(uint32_t rank) const;
  bool died(uint32_t rank) const;
  /// Everything that others may not know, for one that has just been connected.
  std::vector<std::string> messages() const;
  std::vector<Sighting> sightings(uint32_t subtree) const;

  /// What exchanges gave. Number 0 is that of joining.
  void deliver(Spread spread);
  /// Waits for the result of an exchange until the deadline, or until it can only fail; nothing
  /// then. `obstacle` is a rank that left or refused before it gave its part, if there is one.
  std::optional<std::vector<std::string>> awaitExchange(uint64_t number, uint64_t run,
                                                        Clock::time_point deadline,
                                                        std::optional<std::string> &obstacle);

  void beginAsking(uint64_t number);
  void deliver(const Reply &reply);
  /// Ranks that are still there and have not answered.
  std::vector<uint32_t> silent() const;
  /// Returns when all ranks that are still there have answered, at the deadline, or, if
  /// `whileAlive`, when the world is given up.
  void awaitAnswers(Clock::time_point deadline, bool whileAlive);
  std::vector<std::optional<std::string>> takeAnswers();

private:
  struct Rank {
    std::optional<Leave> left;
    bool dead = false, gaveUp = false;
    std::deque<Refusal> refusals; ///< the last ones
    std::optional<std::string> where;
    Clock::time_point seen;
  };
  // The lock is held.
  void giveUpFor(uint32_t rank, shardrt_status status, std::string reason);
  std::vector<uint32_t> silentRanks() const;
  std::optional<std::string> obstacleTo(uint64_t number, uint64_t run) const;

  const uint32_t self;
  mutable std::mutex mutex; ///< guards all below
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::vector<Death> deaths;
  std::vector<GiveUp> givenUpBy;
  std::optional<Failure> first; ///< with the reason as it was given
  uint32_t firstRank = 0;
  std::atomic<bool> aborted{false};
  std::optional<Spread> result;
  uint64_t asking = 0;
  std::vector<std::optional<std::string>> answers;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_CONTROL_KNOWLEDGE_H
