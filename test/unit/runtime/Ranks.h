// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A local world whose ranks run a function each, on threads.
#ifndef SHARDC_TEST_UNIT_RUNTIME_RANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_RANKS_H

#include "runtime/comm/Communicator.h"

#include <functional>
#include <thread>

namespace test {

/// What each rank's function threw; status 0 if nothing.
struct Outcome {
  shardrt_status status = SHARDRT_OK;
  std::string message;
};

/// Runs `body(end)` on one thread for each rank; the end is destroyed when the body is left, as by
/// a rank that stops.
inline std::vector<Outcome> runRanks(uint32_t world,
                                     const std::function<void(shardc::rt::Communicator &)> &body,
                                     shardc::rt::Sharing sharing = shardc::rt::Sharing::Automatic) {
  std::vector<Outcome> outcomes(world);
  auto ends = shardc::rt::makeLocalWorld(world, sharing);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < world; ++r)
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
