// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that start and wait for collectives.
#ifndef SHARDC_TEST_UNIT_RUNTIME_STREAMRANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_STREAMRANKS_H

#include "runtime/comm/Stream.h"
#include "test/unit/runtime/Ranks.h"

namespace test {

using namespace shardc::rt;

/// An all-reduce over the world of one f32 per step.
struct Reduce {
  Reduce(const WorldKind &kind, CommStream::Options options) : kind(kind), options(options) {}

  /// body(stream, group, collective) on each rank.
  using Body =
      std::function<void(CommStream &, Group &, const shardrt_collective &, uint32_t rank)>;
  std::vector<Outcome> onRanks(uint32_t world, const Body &body) {
    std::vector<uint32_t> all;
    for (uint32_t r = 0; r < world; ++r)
      all.push_back(r);
    return kind.run(world, [&](Communicator &end) {
      connectGroups(end, {all});
      EventLog events(true, int32_t(end.rank()));
      CommStream stream(end, *end.hostTransport(), events, options);
      body(stream, end.group(all), collective.desc, end.rank());
      stream.drain();
    });
  }
  const WorldKind &kind;
  CommStream::Options options;
  Collective collective{
      SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.1"};
};

inline shardrt_collective_tensor tensorOf(std::vector<float> &in, std::vector<float> &out,
                                          int64_t &extent) {
  extent = int64_t(in.size());
  return {in.data(), out.data(), &extent, nullptr, nullptr};
}

inline void expectOk(const std::vector<Outcome> &outcomes) {
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_STREAMRANKS_H
