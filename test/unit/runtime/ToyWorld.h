// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A world for tests that shares nothing with the runtime's own: threads meet under one lock, and
// the last to arrive does the work of all while the others wait. Slow and simple.
#ifndef SHARDC_TEST_UNIT_RUNTIME_TOYWORLD_H
#define SHARDC_TEST_UNIT_RUNTIME_TOYWORLD_H

#include "runtime/include/shardrt.h"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace test {

/// Why a meeting failed.
struct ToyFailure {
  shardrt_status status;
  std::string reason;
};

class ToyWorld {
public:
  explicit ToyWorld(uint32_t size) : ranks(size) {}
  uint32_t size() const { return uint32_t(ranks.size()); }

  /// What a rank brings to a meeting.
  struct Visit {
    uint32_t rank;
    std::vector<uint32_t> members;
    std::string what; ///< for messages
    const void *payload;
    uint64_t run;
    double timeout;
  };
  /// Sees the payloads by position; returns how they disagree, if they do.
  using Work = std::function<std::string(const std::vector<const void *> &)>;

  /// Returns when all members are there and `work` was done by one of them.
  std::optional<ToyFailure> meet(const Visit &visit, const Work &work) {
    using Clock = std::chrono::steady_clock;
    auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(visit.timeout));
    std::unique_lock lock(mutex);
    Channel &channel = channels[visit.members];
    channel.visits.resize(visit.members.size());
    if (over)
      return over;
    for (size_t p = 0; p < visit.members.size(); ++p)
      if (visit.members[p] == visit.rank)
        channel.visits[p] = &visit;
    ranks[visit.rank].inside = &visit;
    uint64_t generation = channel.generation;
    std::optional<ToyFailure> failure;
    if (++channel.arrived == visit.members.size()) {
      if (std::string problem = disagreement(channel, work); !problem.empty())
        failure = give(SHARDRT_MISMATCH, problem);
      else
        ++channel.generation;
      channel.arrived = 0;
      channel.visits.assign(visit.members.size(), nullptr);
      changed.notify_all();
    }
    while (!failure && channel.generation == generation) {
      if (over)
        failure = over;
      else if (std::string reason = cannotCome(channel, visit); !reason.empty())
        failure = give(SHARDRT_ABORTED, reason);
      else if (Clock::now() >= deadline)
        failure = give(SHARDRT_TIMEOUT, lateness(channel, visit));
      else
        changed.wait_until(lock, deadline);
    }
    ranks[visit.rank].inside = nullptr;
    return failure;
  }

  /// Gives up because this rank has waited long enough for these members, if it still does.
  std::optional<ToyFailure> expire(uint32_t rank, const std::vector<uint32_t> &members) {
    std::lock_guard lock(mutex);
    if (!over && ranks[rank].inside && ranks[rank].inside->members == members)
      give(SHARDRT_TIMEOUT, lateness(channels[members], *ranks[rank].inside));
    return over;
  }
  void abort(shardrt_status status, const std::string &reason) {
    std::lock_guard lock(mutex);
    give(status, reason);
  }
  void refuse(uint32_t rank, uint64_t run, const std::string &reason) {
    std::lock_guard lock(mutex);
    ranks[rank].refusedRun = run;
    ranks[rank].refusal = reason;
    changed.notify_all();
  }
  void leave(uint32_t rank) {
    std::lock_guard lock(mutex);
    ranks[rank].gone = true;
    changed.notify_all();
  }
  void notePosition(uint32_t rank, const char *name, const char *location) {
    std::lock_guard lock(mutex);
    ranks[rank].position = name ? std::string(name) + " (" + location + ")" : "";
  }

private:
  struct Rank {
    bool gone = false;
    uint64_t refusedRun = 0;
    std::string refusal, position;
    const Visit *inside = nullptr;
  };
  struct Channel {
    std::vector<const Visit *> visits;
    size_t arrived = 0;
    uint64_t generation = 0;
  };

  ToyFailure give(shardrt_status status, const std::string &reason) {
    if (!over)
      over = ToyFailure{status, reason};
    changed.notify_all();
    return *over;
  }

  static std::string disagreement(const Channel &channel, const Work &work) {
    std::vector<const void *> payloads;
    for (const Visit *visit : channel.visits) {
      const Visit &first = *channel.visits[0];
      if (visit->what != first.what)
        return "ranks disagree: rank " + std::to_string(first.rank) + " is in " + first.what +
               ", rank " + std::to_string(visit->rank) + " is in " + visit->what;
      if (visit->run != first.run)
        return "ranks disagree: run " + std::to_string(first.run) + " and run " +
               std::to_string(visit->run);
      payloads.push_back(visit->payload);
    }
    return work(payloads);
  }

  std::string cannotCome(const Channel &channel, const Visit &visit) const {
    for (size_t p = 0; p < channel.visits.size(); ++p) {
      const Rank &rank = ranks[visit.members[p]];
      std::string name = "rank " + std::to_string(visit.members[p]);
      if (!channel.visits[p] && visit.run != 0 && rank.refusedRun >= visit.run)
        return name + " did not start this run: " + rank.refusal;
      if (!channel.visits[p] && rank.gone)
        return name + " has left";
    }
    return "";
  }

  std::string lateness(const Channel &channel, const Visit &visit) const {
    std::vector<uint32_t> absent, present;
    for (size_t p = 0; p < channel.visits.size(); ++p)
      (channel.visits[p] ? present : absent).push_back(visit.members[p]);
    std::string text = "too late: missing " + list(absent) + ", arrived " + list(present) + " (";
    for (uint32_t rank : absent)
      text += "rank " + std::to_string(rank) +
              (ranks[rank].inside             ? " is in " + ranks[rank].inside->what
               : ranks[rank].position.empty() ? " is not running"
                                              : " was last seen in " + ranks[rank].position);
    return text + ")";
  }
  static std::string list(const std::vector<uint32_t> &numbers) {
    std::string text = numbers.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < numbers.size(); ++i)
      text += (i == 0 ? "" : i + 1 == numbers.size() ? " and " : ", ") + std::to_string(numbers[i]);
    return text;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> ranks;
  std::map<std::vector<uint32_t>, Channel> channels;
  std::optional<ToyFailure> over;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_TOYWORLD_H
