// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds whose ranks run a function each, on threads, and the suites that every kind of
// communicator must pass. A communicator of any kind joins by SHARDRT_CONFORMANCE in a file of its
// own.
#ifndef SHARDC_TEST_UNIT_RUNTIME_RANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_RANKS_H

#include "runtime/comm/Communicator.h"
#include "test/unit/runtime/ToyStream.h"

#include <functional>
#include <gtest/gtest.h>
#include <thread>

namespace test {

/// What each rank's function threw; status 0 if nothing.
struct Outcome {
  shardrt_status status = SHARDRT_OK;
  std::string message;
};

/// A way to make the ends of a world.
struct WorldKind {
  std::string name;
  std::function<std::vector<std::unique_ptr<shardc::rt::Communicator>>(uint32_t world)> make;
  /// Whether the message about extents that differ has both.
  bool namesExtents = true;
};
inline void PrintTo(const WorldKind &kind, std::ostream *out) { *out << kind.name; }

/// Runs `body(end)` on one thread for each rank; the end is destroyed when the body is left, as by
/// a rank that stops.
inline std::vector<Outcome> runRanks(std::vector<std::unique_ptr<shardc::rt::Communicator>> ends,
                                     const std::function<void(shardc::rt::Communicator &)> &body) {
  std::vector<Outcome> outcomes(ends.size());
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < ends.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        body(*ends[r]);
      } catch (const shardc::rt::Failure &failure) {
        outcomes[r] = {failure.status, failure.message};
      }
      ends[r].reset();
    });
  for (std::thread &thread : threads)
    thread.join();
  return outcomes;
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
  end.streamTransport()->enqueue(call, &stream);
  stream.wait([&] { end.streamTransport()->poll(call, deadline); });
}

/// What all communicators must do (CollectivesTest.cpp, FaultsTest.cpp), and what those must that
/// move data in host memory (StreamTest.cpp).
class OverWorlds : public ::testing::TestWithParam<WorldKind> {
protected:
  std::vector<Outcome> runRanks(uint32_t world,
                                const std::function<void(shardc::rt::Communicator &)> &body) const {
    return test::runRanks(GetParam().make(world), body);
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
