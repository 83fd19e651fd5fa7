// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/world/Choice.h"

#include "runtime/control/Secret.h"
#include "runtime/shared/SharedMemory.h"

#include <algorithm>
#include <map>

namespace shardc::rt {

namespace {

constexpr Topic factsTopic{"the choice of a communicator"};
constexpr char separator = '\x1f'; // within what a rank says

/// "rank 1", "ranks 0 and 2"; "all ranks".
std::string whoText(const std::vector<uint32_t> &ranks, uint32_t worldSize) {
  return ranks.size() == worldSize ? "all ranks" : rankList(ranks);
}

/// Each text once, with the ranks that said it; empty texts do not count.
std::string byRanks(const std::vector<std::string> &texts, const char *between) {
  std::map<std::string, std::vector<uint32_t>> ranksOf;
  for (uint32_t rank = 0; rank < texts.size(); ++rank)
    if (!texts[rank].empty())
      ranksOf[texts[rank]].push_back(rank);
  std::string out;
  for (auto &[text, ranks] : ranksOf)
    out += (out.empty() ? "" : between) + whoText(ranks, uint32_t(texts.size())) + ": " + text;
  return out;
}

std::vector<std::string> splitFacts(const std::string &text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

[[noreturn]] void give(ControlPlane &plane, shardrt_status status, const std::string &reason) {
  // All ranks have seen the same, and say so themselves.
  plane.abort(status, reason);
  throw Failure(status, reason);
}

/// Tells and hears what the ranks know, and fills what follows from it.
void compareFacts(ControlPlane &plane, const std::vector<CommunicatorKind> &kinds,
                  const RankFacts &facts, Clock::time_point deadline, World &world) {
  std::string mine = facts.wish + separator + facts.processors + separator +
                     (plane.rank() == 0 ? makeSecret().substr(0, 16) : std::string());
  std::vector<std::vector<std::string>> said;
  for (const std::string &text : plane.exchange(factsTopic, mine, deadline)) {
    said.push_back(splitFacts(text));
    said.back().resize(3);
  }
  world.id = said[0][2];
  std::vector<std::string> wishes;
  uint32_t sharers = 0;
  for (uint32_t rank = 0; rank < said.size(); ++rank) {
    wishes.push_back(said[rank][0]);
    sharers += plane.peers()[rank].machine == plane.peers()[plane.rank()].machine &&
               said[rank][1] == facts.processors;
  }
  world.threads = std::max(1u, facts.numProcessors / std::max(1u, sharers));
  if (std::ranges::any_of(wishes, [&](const std::string &wish) { return wish != wishes[0]; }))
    give(plane, SHARDRT_MISMATCH, "ranks differ in SHARDRT_COMMUNICATOR: " + byRanks(wishes, ", "));
  std::string names = "auto";
  for (const CommunicatorKind &kind : kinds)
    names += ", " + kind.name;
  bool known =
      facts.wish == "auto" || std::ranges::any_of(kinds, [&](const CommunicatorKind &kind) {
        return kind.name == facts.wish;
      });
  if (!known)
    give(plane, SHARDRT_INVALID_ARGUMENT,
         "SHARDRT_COMMUNICATOR is '" + facts.wish + "', expected one of " + names);
}

} // namespace

std::string processesText(const ControlPlane &plane) {
  std::vector<std::string> machines;
  for (const Peer &peer : plane.peers())
    if (std::ranges::find(machines, peer.machine) == machines.end())
      machines.push_back(peer.machine);
  std::string text = std::to_string(plane.worldSize()) + " processes";
  return machines.size() == 1 ? text : text + " on " + std::to_string(machines.size()) + " hosts";
}

World chooseCommunicator(std::shared_ptr<ControlPlane> plane,
                         const std::vector<CommunicatorKind> &kinds, const RankFacts &facts,
                         Clock::time_point deadline) {
  World world;
  compareFacts(*plane, kinds, facts, deadline, world);
  std::string tried;
  for (const CommunicatorKind &kind : kinds) {
    if (facts.wish != "auto" && facts.wish != kind.name)
      continue;
    std::vector<std::string> reasons = plane->exchange(factsTopic, kind.prepare(*plane), deadline);
    std::string problem = byRanks(reasons, "; ");
    if (!problem.empty()) {
      tried += "\n  " + kind.name + ": " + problem;
      continue;
    }
    world.communicator = kind.open(plane, deadline);
    world.description = kind.name + ", " + processesText(*plane) + ", " + kind.details();
    world.reason = facts.wish == "auto" ? "the first that all ranks can use"
                                        : "SHARDRT_COMMUNICATOR asks for it";
    if (!tried.empty())
      world.reason += "; not possible:" + tried;
    return world;
  }
  give(*plane, SHARDRT_NOT_FOUND, "no communicator can be used by all ranks:" + tried);
}

CommunicatorKind sharedMemoryKind() {
  CommunicatorKind kind;
  kind.name = "local";
  kind.prepare = [](const ControlPlane &plane) -> std::string {
    std::map<std::string, std::vector<uint32_t>> machines;
    for (uint32_t rank = 0; rank < plane.worldSize(); ++rank)
      machines[plane.peers()[rank].machine].push_back(rank);
    if (machines.size() == 1)
      return "";
    std::string text;
    for (auto &[machine, ranks] : machines)
      text +=
          (text.empty() ? "" : ", ") + rankList(ranks) + " on " + plane.peers()[ranks.front()].host;
    return "the ranks share no memory (" + text + ")";
  };
  kind.open = [](std::shared_ptr<ControlPlane> plane, Clock::time_point deadline) {
    return makeSharedMemoryEnd(std::move(plane), deadline);
  };
  kind.details = [] { return std::string("shared memory"); };
  return kind;
}

} // namespace shardc::rt
