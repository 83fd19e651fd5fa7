// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives in flight: order, tokens, failures, and overlap with computation over an emulated
// link.
#include "runtime/comm/Stream.h"
#include "test/unit/runtime/Ranks.h"

#include <gtest/gtest.h>

using namespace shardc::rt;
using test::Stream;

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

double sinceMs(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

/// An all-reduce over the world of one f32 per step.
struct Reduce {
  Reduce(const test::WorldKind &kind, CommStream::Options options) : kind(kind), options(options) {}

  /// body(stream, group, collective) on each rank.
  using Body =
      std::function<void(CommStream &, Group &, const shardrt_collective &, uint32_t rank)>;
  std::vector<test::Outcome> onRanks(uint32_t world, const Body &body) {
    std::vector<uint32_t> all;
    for (uint32_t r = 0; r < world; ++r)
      all.push_back(r);
    return test::runRanks(kind.make(world), [&](Communicator &end) {
      EventLog events(true, int32_t(end.rank()));
      CommStream stream(end, *end.hostTransport(), events, options);
      body(stream, end.group(all), collective.desc, end.rank());
      stream.drain();
    });
  }
  const test::WorldKind &kind;
  CommStream::Options options;
  test::Collective collective{
      SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.1"};
};

shardrt_collective_tensor tensorOf(std::vector<float> &in, std::vector<float> &out,
                                   int64_t &extent) {
  extent = int64_t(in.size());
  return {in.data(), out.data(), &extent, nullptr, nullptr};
}

const test::WorldKind local{"local", [](uint32_t world) { return makeLocalWorld(world); }};

void expectOk(const std::vector<test::Outcome> &outcomes) {
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

} // namespace

TEST_P(Stream, ManyInFlightWaitedForInAnyOrder) {
  for (bool thread : {true, false}) {
    Reduce reduce(GetParam(), {60, thread, {}});
    expectOk(reduce.onRanks(3, [](CommStream &stream, Group &group, auto &collective, uint32_t r) {
      constexpr size_t count = 40;
      std::vector<std::vector<float>> in(count), out(count);
      std::vector<uint64_t> tokens;
      for (size_t i = 0; i < count; ++i) {
        in[i].assign(i + 1, float(r + i));
        out[i].resize(i + 1);
        int64_t extent; // only read during start
        shardrt_collective_tensor tensor = tensorOf(in[i], out[i], extent);
        tokens.push_back(stream.start(collective, &group, 1, &tensor));
        extent = -1;
      }
      for (size_t i = count; i-- > 0;) {
        stream.wait(tokens[i]);
        for (float x : out[i])
          ASSERT_EQ(x, float(0 + 1 + 2) + 3 * float(i));
      }
    }));
  }
}

TEST_P(Stream, SynchronousOnesKeepTheOrder) {
  Reduce reduce(GetParam(), {60, true, {}});
  expectOk(reduce.onRanks(2, [](CommStream &stream, Group &group, auto &collective, uint32_t r) {
    for (int i = 0; i < 200; ++i) {
      std::vector<float> a(3, float(r + 1)), b(5, 10), outA(3), outB(5);
      int64_t extentA, extentB;
      shardrt_collective_tensor first = tensorOf(a, outA, extentA),
                                second = tensorOf(b, outB, extentB);
      uint64_t token = stream.start(collective, &group, 1, &first);
      stream.runNow(collective, &group, 1, &second);
      ASSERT_EQ(outB[4], 20);
      stream.wait(token);
      ASSERT_EQ(outA[2], 3);
    }
  }));
}

TEST_P(Stream, BadTokensAreErrors) {
  Reduce reduce(GetParam(), {60, true, {}});
  expectOk(reduce.onRanks(2, [](CommStream &stream, Group &group, auto &collective, uint32_t) {
    std::vector<float> in(2, 1), out(2);
    int64_t extent;
    shardrt_collective_tensor tensor = tensorOf(in, out, extent);
    uint64_t token = stream.start(collective, &group, 1, &tensor);
    EXPECT_EQ(stream.collectiveOf(token), &collective);
    stream.wait(token);
    EXPECT_EQ(stream.collectiveOf(token), nullptr);
    EXPECT_THROW(stream.wait(token), Failure) << "waited for twice";
    EXPECT_THROW(stream.wait(12345), Failure);
  }));
}

TEST_P(Stream, ARankOutsideTheGroupHasNothingToWaitFor) {
  Reduce reduce(GetParam(), {60, true, {}});
  expectOk(reduce.onRanks(1, [](CommStream &stream, Group &, auto &collective, uint32_t) {
    stream.wait(stream.start(collective, nullptr, 1, nullptr));
    stream.runNow(collective, nullptr, 1, nullptr);
  }));
}

TEST_P(Stream, BadExtentsAreReportedByTheWait) {
  Reduce reduce(GetParam(), {60, true, {}});
  expectOk(reduce.onRanks(1, [](CommStream &stream, Group &group, auto &collective, uint32_t) {
    int64_t negative = -3, one = 1;
    float value = 0;
    shardrt_collective_tensor bad{&value, &value, &negative, nullptr, nullptr};
    uint64_t token = stream.start(collective, &group, 1, &bad);
    EXPECT_THROW(stream.wait(token), Failure);
    shardrt_collective_tensor null{nullptr, &value, &one, nullptr, nullptr};
    EXPECT_THROW(stream.runNow(collective, &group, 1, &null), Failure);
  }));
}

TEST_P(Stream, DrainReportsWhatNobodyWaitedFor) {
  Reduce reduce(GetParam(), {0.2, true, {}});
  auto outcomes =
      reduce.onRanks(2, [](CommStream &stream, Group &group, auto &collective, uint32_t r) {
        if (r == 1)
          return; // leaves
        std::vector<float> in(2, 1), out(2);
        int64_t extent;
        shardrt_collective_tensor tensor = tensorOf(in, out, extent);
        stream.start(collective, &group, 1, &tensor);
        std::optional<Failure> failure = stream.drain();
        ASSERT_TRUE(failure);
        EXPECT_NE(stream.flightRecord().find("all_reduce.1"), std::string::npos);
      });
  expectOk(outcomes);
}

TEST(Link, Parse) {
  EXPECT_FALSE(Link::parse(nullptr).enabled());
  EXPECT_FALSE(Link::parse("").enabled());
  Link link = Link::parse("20,12.5");
  EXPECT_EQ(link.latencyUs, 20);
  // 1e6 bytes at 12.5 GB/s: 80 us.
  EXPECT_EQ(link.time(1000000), std::chrono::microseconds(100));
  for (const char *bad : {"20", "20,", ",5", "a,b", "1,0", "-1,5", "1,5x", "nan,1", "1,inf"})
    EXPECT_THROW(Link::parse(bad), Failure) << bad;
}

TEST(Link, WireBytesAreRingVolumes) {
  Reduce reduce(local, {60, false, {}});
  expectOk(reduce.onRanks(4, [](CommStream &, Group &group, auto &collective, uint32_t) {
    int64_t extent = 8;
    float data[8];
    shardrt_collective_tensor tensor{data, data, &extent, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(collective, group, 1, &tensor), "");
    EXPECT_EQ(call.wireBytes(), 2 * 3 * 8 * 4 / 4); // 2 (n-1)/n B
    EXPECT_EQ(call.operandBytes(), 32);
  }));
}

namespace {
/// Milliseconds of some steps of a 60 ms all-reduce and 90 ms of computing each. Sleeping stands
/// for computing: it needs no core.
double stepsOverLink(bool overlap) {
  constexpr int steps = 4;
  Reduce reduce(local, {60, true, Link{60000, 1}});
  std::atomic<double> longest = 0;
  expectOk(reduce.onRanks(2, [&](CommStream &stream, Group &group, auto &collective, uint32_t) {
    std::vector<float> in(4, 1), out(4);
    int64_t extent;
    shardrt_collective_tensor tensor = tensorOf(in, out, extent);
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      uint64_t token = 0;
      if (overlap)
        token = stream.start(collective, &group, 1, &tensor);
      else
        stream.runNow(collective, &group, 1, &tensor);
      std::this_thread::sleep_for(std::chrono::milliseconds(90));
      if (overlap)
        stream.wait(token);
    }
    longest = std::max(longest.load(), sinceMs(begin));
  }));
  return longest;
}
} // namespace

TEST(Link, StartedCollectivesProgressWhileTheRankComputes) {
  EXPECT_GE(stepsOverLink(false), 4 * (90 + 60));
  // 360 ms when hidden, 600 ms when not; the best of a few tries, as other processes want the
  // cores.
  double best = stepsOverLink(true);
  for (int tries = 0; tries < 3 && best >= 480; ++tries)
    best = std::min(best, stepsOverLink(true));
  EXPECT_LT(best, 480) << "communication must hide behind computation";
}
