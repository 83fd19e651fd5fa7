// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/control/Knowledge.h"

#include "runtime/control/Tree.h"

#include <algorithm>

namespace shardc::rt {

namespace {
/// Refusals of a rank that are kept. A rank that waits in a run is at most a few behind.
constexpr size_t keptRefusals = 16;

uint64_t millisecondsSince(Clock::time_point time) {
  return uint64_t(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - time).count());
}
} // namespace

std::string Peer::str(uint32_t rank) const {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(pid) + " on " + host + ")";
}

void Knowledge::giveUpFor(uint32_t rank, shardrt_status status, std::string reason) {
  if (first)
    return;
  first.emplace(status, std::move(reason));
  firstRank = rank;
  aborted.store(true, std::memory_order_release);
}

bool Knowledge::learn(const GiveUp &giveUp) {
  std::lock_guard lock(mutex);
  if (std::exchange(ranks[giveUp.rank].gaveUp, true))
    return false;
  givenUpBy.push_back(giveUp);
  giveUpFor(giveUp.rank, shardrt_status(giveUp.status), giveUp.reason);
  changed.notify_all();
  return true;
}

bool Knowledge::learn(const Death &death) {
  std::lock_guard lock(mutex);
  Rank &rank = ranks[death.rank];
  if (rank.left || std::exchange(rank.dead, true))
    return false;
  deaths.push_back(death);
  giveUpFor(death.rank, SHARDRT_ABORTED, death.reason);
  changed.notify_all();
  return true;
}

bool Knowledge::learn(const Leave &leave) {
  std::lock_guard lock(mutex);
  if (ranks[leave.rank].left)
    return false;
  ranks[leave.rank].left = leave;
  changed.notify_all();
  return true;
}

bool Knowledge::learn(const Refusal &refusal) {
  std::lock_guard lock(mutex);
  std::deque<Refusal> &all = ranks[refusal.rank].refusals;
  for (const Refusal &known : all)
    if (known.run == refusal.run)
      return false;
  all.push_back(refusal);
  if (all.size() > keptRefusals)
    all.pop_front();
  changed.notify_all();
  return true;
}

bool Knowledge::learn(const Sighting &sighting) {
  std::lock_guard lock(mutex);
  Rank &rank = ranks[sighting.rank];
  // A hostile number must not overflow the clock.
  auto ago = std::chrono::milliseconds(std::min<uint64_t>(sighting.milliseconds, 86400000));
  Clock::time_point seen = Clock::now() - ago;
  if (rank.where && rank.seen > seen)
    return false;
  bool isFirst = !rank.where;
  rank.where = sighting.where;
  rank.seen = seen;
  return isFirst;
}

std::optional<Failure> Knowledge::failure() const {
  std::lock_guard lock(mutex);
  if (!first)
    return std::nullopt;
  return Failure(first->status, "rank " + std::to_string(firstRank) + ": " + first->message);
}

Failure Knowledge::failureOf(const std::string &activity) const {
  std::lock_guard lock(mutex);
  if (!first)
    return Failure(SHARDRT_INTERNAL, activity + ": the world was not given up");
  if (firstRank == self)
    return Failure(first->status, first->message);
  // A deadline and a disagreement concern everybody; other reasons are the failing rank's own.
  bool shared = first->status == SHARDRT_TIMEOUT || first->status == SHARDRT_MISMATCH;
  return Failure(shared ? first->status : SHARDRT_ABORTED,
                 activity + ": given up because of rank " + std::to_string(firstRank) + ": " +
                     first->message);
}

std::optional<std::string> Knowledge::left(uint32_t rank) const {
  std::lock_guard lock(mutex);
  const std::optional<Leave> &leave = ranks[rank].left;
  return leave ? std::optional(leave->account) : std::nullopt;
}

std::optional<std::string> Knowledge::refused(uint32_t rank, uint64_t run) const {
  std::lock_guard lock(mutex);
  for (const Refusal &refusal : ranks[rank].refusals)
    if (refusal.run == run)
      return refusal.reason;
  return std::nullopt;
}

std::optional<ControlPlane::LastSeen> Knowledge::lastSeen(uint32_t rank) const {
  std::lock_guard lock(mutex);
  const Rank &state = ranks[rank];
  if (!state.where)
    return std::nullopt;
  return ControlPlane::LastSeen{*state.where, Clock::now() - state.seen};
}

bool Knowledge::gone(uint32_t rank) const {
  std::lock_guard lock(mutex);
  return ranks[rank].left || ranks[rank].dead;
}

bool Knowledge::died(uint32_t rank) const {
  std::lock_guard lock(mutex);
  return ranks[rank].dead;
}

std::optional<std::string> Knowledge::obstacleTo(uint64_t number, uint64_t run) const {
  for (uint32_t r = 0; r < ranks.size(); ++r) {
    const Rank &rank = ranks[r];
    std::string name = "rank " + std::to_string(r);
    for (const Refusal &refusal : rank.refusals)
      if (run != 0 && refusal.run == run && refusal.exchanges < number)
        return name + " did not start this run: " + refusal.reason;
    // Perhaps because of such a refusal.
    if (rank.left && rank.left->exchanges < number)
      return name + " has left and cannot take part";
  }
  return std::nullopt;
}

std::vector<std::string> Knowledge::messages() const {
  std::lock_guard lock(mutex);
  std::vector<std::string> out;
  for (const GiveUp &giveUp : givenUpBy)
    out.push_back(encode(giveUp));
  for (const Death &death : deaths)
    out.push_back(encode(death));
  for (const Rank &rank : ranks) {
    if (rank.left)
      out.push_back(encode(*rank.left));
    for (const Refusal &refusal : rank.refusals)
      out.push_back(encode(refusal));
  }
  return out;
}

std::vector<Sighting> Knowledge::sightings(uint32_t subtree) const {
  std::lock_guard lock(mutex);
  std::vector<Sighting> out;
  for (uint32_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].where && inSubtree(r, subtree))
      out.push_back({r, millisecondsSince(ranks[r].seen), *ranks[r].where});
  return out;
}

void Knowledge::deliver(Spread spread) {
  std::lock_guard lock(mutex);
  result = std::move(spread);
  changed.notify_all();
}

std::optional<std::vector<std::string>>
Knowledge::awaitExchange(uint64_t number, uint64_t run, Clock::time_point deadline,
                         std::optional<std::string> &obstacle) {
  std::unique_lock lock(mutex);
  auto here = [&] { return result && result->number == number; };
  changed.wait_until(lock, deadline, [&] { return here() || first || obstacleTo(number, run); });
  if (!here()) {
    obstacle = obstacleTo(number, run);
    return std::nullopt;
  }
  return std::move(std::exchange(result, std::nullopt)->parts);
}

void Knowledge::beginAsking(uint64_t number) {
  std::lock_guard lock(mutex);
  asking = number;
  answers.assign(ranks.size(), std::nullopt);
}

void Knowledge::deliver(const Reply &reply) {
  std::lock_guard lock(mutex);
  if (reply.number != asking || reply.rank >= answers.size())
    return;
  answers[reply.rank] = reply.text;
  changed.notify_all();
}

std::vector<uint32_t> Knowledge::silentRanks() const {
  std::vector<uint32_t> out;
  for (uint32_t r = 0; r < answers.size(); ++r)
    if (!answers[r] && !ranks[r].left && !ranks[r].dead)
      out.push_back(r);
  return out;
}

std::vector<uint32_t> Knowledge::silent() const {
  std::lock_guard lock(mutex);
  return silentRanks();
}

void Knowledge::awaitAnswers(Clock::time_point deadline, bool whileAlive) {
  std::unique_lock lock(mutex);
  changed.wait_until(lock, deadline,
                     [&] { return (whileAlive && first) || silentRanks().empty(); });
}

std::vector<std::optional<std::string>> Knowledge::takeAnswers() {
  std::lock_guard lock(mutex);
  asking = 0;
  return std::exchange(answers, {});
}

} // namespace shardc::rt
