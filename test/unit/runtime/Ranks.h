// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds whose ranks run a function each, on threads, and the suites that every kind of
// communicator must pass. A communicator of any kind joins by SHARDRT_CONFORMANCE in a file of its
// own.
#ifndef SHARDC_TEST_UNIT_RUNTIME_RANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_RANKS_H

#include "runtime/comm/Communicator.h"
#include "test/unit/runtime/ToyStream.h"

#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <thread>

namespace test {

/// What each rank's function threw; status 0 if nothing.
struct Outcome {
  shardrt_status status = SHARDRT_OK;
  std::string message;
};

/// Where the other ranks of a world are other processes, which run the same test.
struct ElsewhereRanks {
  uint32_t own; ///< the rank of this process
  /// Gives the others the own outcome, and gets theirs.
  std::function<void(std::vector<Outcome> &)> share;
};
inline std::optional<ElsewhereRanks> elsewhere;

/// Runs `body(end)` on one thread for each rank; the end is destroyed when the body is left, as by
/// a rank that stops. Ends that are null are in other processes.
inline std::vector<Outcome> runRanks(std::vector<std::unique_ptr<shardc::rt::Communicator>> ends,
                                     const std::function<void(shardc::rt::Communicator &)> &body) {
  std::vector<Outcome> outcomes(ends.size());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ends.size(); ++r) {
    if (!ends[r])
      continue;
    threads.emplace_back([&, r] {
      try {
        body(*ends[r]);
      } catch (const shardc::rt::Failure &failure) {
        outcomes[r] = {failure.status, failure.message};
      }
      ends[r].reset();
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  if (elsewhere)
    elsewhere->share(outcomes);
  return outcomes;
}

/// A way to make the ends of a world.
struct WorldKind {
  using Body = std::function<void(shardc::rt::Communicator &)>;

  std::string name;
  std::function<std::vector<std::unique_ptr<shardc::rt::Communicator>>(uint32_t world)> make;
  /// Whether the message about extents that differ has both.
  bool namesExtents = true;
  /// Whether messages between ranks cost so much that only worlds of four try every type.
  bool slow = false;
  /// Runs a body on each rank of a world, where that takes more than threads with the ends of
  /// `make`: what ranks compute is seen by the test only in memory that it shares (Shared).
  std::function<std::vector<Outcome>(uint32_t world, const Body &body)> runs = {};

  std::vector<Outcome> run(uint32_t world, const Body &body) const {
    return runs ? runs(world, body) : runRanks(make(world), body);
  }
};
inline void PrintTo(const WorldKind &kind, std::ostream *out) { *out << kind.name; }

/// What a program does before its first collective: lets all ranks connect these groups.
inline void connectGroups(shardc::rt::Communicator &end,
                          const std::vector<std::vector<uint32_t>> &sets) {
  std::vector<std::array<uint32_t, 2>> bounds;
  std::vector<shardrt_group> groups;
  for (const std::vector<uint32_t> &members : sets)
    bounds.push_back({0, uint32_t(members.size())});
  for (size_t i = 0; i < sets.size(); ++i)
    groups.push_back({"group", bounds[i].data(), sets[i].data(), 1, 0});
  end.connect(groups, shardc::rt::deadlineAfter(60));
}
/// All ranks, and pairs of neighbours.
inline std::vector<std::vector<uint32_t>> usualGroups(uint32_t world) {
  std::vector<std::vector<uint32_t>> sets(1);
  for (uint32_t rank = 0; rank < world; ++rank)
    sets[0].push_back(rank);
  for (uint32_t rank = 0; rank + 2 <= world; rank += 2)
    sets.push_back({rank, rank + 1});
  return sets;
}

/// Runs a collective in the form that the communicator has, and waits for it.
inline void runCollective(shardc::rt::Communicator &end, const shardc::rt::CollectiveCall &call,
                          double timeout) {
  auto deadline = shardc::rt::deadlineAfter(timeout);
  if (shardc::rt::HostTransport *host = end.hostTransport()) {
    host->run(call, deadline);
    return;
  }
  ToyStream stream;
  end.streamTransport()->enqueue(call, &stream, deadline);
  stream.wait([&] { end.streamTransport()->poll(call, deadline); });
}

/// Waits until the world of a rank was given up by others. Communicators that do not say so take
/// `seconds` for it.
inline void awaitFailure(const shardc::rt::Communicator &end, double seconds) {
  for (auto until = shardc::rt::deadlineAfter(seconds);
       !end.givenUp() && shardc::rt::Clock::now() < until;)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// What all communicators must do (CollectivesTest.cpp, FaultsTest.cpp), and what those must that
/// move data in host memory (StreamTest.cpp).
class OverWorlds : public ::testing::TestWithParam<WorldKind> {
protected:
  std::vector<Outcome> runRanks(uint32_t world,
                                const std::function<void(shardc::rt::Communicator &)> &body) const {
    return GetParam().run(world, [&](shardc::rt::Communicator &end) {
      connectGroups(end, usualGroups(world));
      body(end);
    });
  }
};
class Collectives : public OverWorlds {};
class Faults : public OverWorlds {};
class Stream : public OverWorlds {};

inline std::string kindOf(const ::testing::TestParamInfo<WorldKind> &info) {
  return info.param.name;
}
/// The suites over these kinds of worlds.
#define SHARDRT_CONFORMANCE(prefix, ...)                                                           \
  using test::Collectives, test::Faults;                                                           \
  INSTANTIATE_TEST_SUITE_P(prefix, Collectives, ::testing::Values(__VA_ARGS__), test::kindOf);     \
  INSTANTIATE_TEST_SUITE_P(prefix, Faults, ::testing::Values(__VA_ARGS__), test::kindOf)
#define SHARDRT_HOST_CONFORMANCE(prefix, ...)                                                      \
  SHARDRT_CONFORMANCE(prefix, __VA_ARGS__);                                                        \
  using test::Stream;                                                                              \
  INSTANTIATE_TEST_SUITE_P(prefix, Stream, ::testing::Values(__VA_ARGS__), test::kindOf)

/// A collective over descriptors that live as long as it does.
struct Collective {
  Collective(uint32_t kind, uint32_t reduction,
             std::vector<shardrt_collective_operand> operandFacts, const char *name = "collective",
             const char *location = "layer.0 (model.py:1)")
      : facts(std::move(operandFacts)) {
    desc.name = name;
    desc.location = location;
    desc.operands = facts.data();
    desc.kind = kind;
    desc.reduction = reduction;
    desc.n_operands = uint32_t(facts.size());
  }
  Collective(const Collective &) = delete;
  void permute(std::vector<uint32_t> newPairs) {
    pairs = std::move(newPairs);
    desc.permutation = pairs.data();
    desc.n_pairs = uint32_t(pairs.size() / 2);
  }
  std::vector<shardrt_collective_operand> facts;
  std::vector<uint32_t> pairs;
  shardrt_collective desc{};
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_RANKS_H
