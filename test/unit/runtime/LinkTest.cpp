// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emulated links: what they say, and overlap of collectives with computation over one.
#include "test/unit/runtime/StreamRanks.h"

using namespace shardc::rt;
using namespace test;

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

double sinceMs(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

const WorldKind local{"local", [](uint32_t world) { return makeLocalWorld(world); }};

} // namespace

TEST(Link, Parse) {
  EXPECT_FALSE(Links::parse(nullptr).enabled());
  EXPECT_FALSE(Links::parse("").enabled());
  Links links = Links::parse("20,12.5");
  EXPECT_EQ(links.ranksPerNode, 0u);
  EXPECT_EQ(links.within.latencyUs, 20);
  // 1e6 bytes at 12.5 GB/s: 80 us.
  EXPECT_EQ(links.within.time(1000000), std::chrono::microseconds(100));
  for (const char *bad : {"20", "20,", ",5", "a,b", "1,0", "-1,5", "1,5x", "nan,1", "1,inf"})
    EXPECT_THROW(Links::parse(bad), Failure) << bad;
}

TEST(Link, ParseNodes) {
  Links links = Links::parse("5,100;4:20,12.5");
  EXPECT_EQ(links.within.gigabytesPerSecond, 100);
  EXPECT_EQ(links.ranksPerNode, 4u);
  EXPECT_EQ(links.between.latencyUs, 20);
  EXPECT_EQ(links.between.gigabytesPerSecond, 12.5);
  for (auto [bad, message] : {std::pair("5,100,4", "expected ';' and the link between nodes"),
                              std::pair("5,100;", "how many ranks share a node"),
                              std::pair("5,100;0:20,12.5", "how many ranks share a node"),
                              std::pair("5,100;-4:20,12.5", "how many ranks share a node"),
                              std::pair("5,100;4,20,12.5", "how many ranks share a node"),
                              std::pair("5,100;4:20", "of the link between nodes at the end"),
                              std::pair("5,100;4:20,0", "of the link between nodes at the end"),
                              std::pair("5,100;4:20,12;", "of the link between nodes at the end"),
                              std::pair("5;4:20,12", "expected latency in microseconds")})
    try {
      Links::parse(bad);
      ADD_FAILURE() << bad;
    } catch (const Failure &failure) {
      EXPECT_NE(std::string(failure.what()).find(message), std::string::npos) << failure.what();
      EXPECT_NE(std::string(failure.what()).find(bad), std::string::npos) << failure.what();
    }
}

TEST(Link, OfGroups) {
  auto of = [](std::vector<uint32_t> members, bool pointToPoint = false) {
    return Links::parse("5,100;4:20,12").of(members, pointToPoint);
  };
  // Ranks 0 to 3 share a node, and 4 to 7.
  EXPECT_EQ(of({0, 2, 3}).gigabytesPerSecond, 100);
  EXPECT_EQ(of({7, 4}).latencyUs, 5);
  EXPECT_EQ(of({0, 1, 2, 3, 4, 5, 6, 7}).gigabytesPerSecond, 12);
  EXPECT_EQ(of({0, 1, 2, 3, 4, 5, 6, 7}).latencyUs, 20);
  EXPECT_EQ(of({2, 6}).gigabytesPerSecond, 3);
  EXPECT_EQ(of({0, 4, 1, 5}).gigabytesPerSecond, 6);
  EXPECT_EQ(of({0, 1, 2, 4}).gigabytesPerSecond, 3); // as fast as the node with one
  EXPECT_EQ(of({0, 1, 2, 3, 4, 5, 6, 7}, true).gigabytesPerSecond, 3);
  EXPECT_EQ(of({0, 1, 2, 3}, true).gigabytesPerSecond, 100);
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

// Sleeping stands for computing: it needs no core. If the link's time passed only while the rank
// waits, every wait would take all of it; of ranks that had to wait for a core, the best one
// counts.
TEST(Link, StartedCollectivesProgressWhileTheRankComputes) {
  constexpr double linkMs = 60;
  constexpr int steps = 10;
  Reduce reduce(local, {60, true, Links{Link{linkMs * 1000, 1}, 0, {}}});
  std::vector<double> best(2, 1e9);
  expectOk(
      reduce.onRanks(2, [&](CommStream &stream, Group &group, auto &collective, uint32_t rank) {
        std::vector<float> in(4, 1), out(4);
        int64_t extent;
        shardrt_collective_tensor tensor = tensorOf(in, out, extent);
        for (int i = 0; i < steps; ++i) {
          Clock::time_point begin = Clock::now();
          stream.runNow(collective, &group, 1, &tensor);
          EXPECT_GE(sinceMs(begin), linkMs);
          uint64_t token = stream.start(collective, &group, 1, &tensor);
          std::this_thread::sleep_for(std::chrono::milliseconds(200));
          begin = Clock::now();
          stream.wait(token);
          best[rank] = std::min(best[rank], sinceMs(begin));
        }
      }));
  for (double ms : best)
    EXPECT_LT(ms, linkMs) << "communication must hide behind computation";
}

TEST(Link, EachGroupHasALinkOfItsOwn) {
  constexpr double latencyUs = 300000;
  Collective reduce(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.1");
  for (bool thread : {true, false})
    expectOk(local.run(2, [&](Communicator &end) {
      connectGroups(end, {{0, 1}, {1, 0}});
      EventLog events(true, int32_t(end.rank()));
      CommStream stream(end, *end.hostTransport(), events,
                        {60, thread, Links{Link{latencyUs, 1}, 0, {}}});
      Group *groups[] = {&end.group(std::vector<uint32_t>{0, 1}),
                         &end.group(std::vector<uint32_t>{1, 0})};
      std::vector<float> in(4, 1), out[4];
      std::vector<uint64_t> tokens;
      for (int i : {0, 0, 1, 0}) {
        int64_t extent;
        std::vector<float> &result = out[tokens.size()];
        result.resize(4);
        shardrt_collective_tensor tensor = tensorOf(in, result, extent);
        tokens.push_back(stream.start(reduce.desc, groups[i], 1, &tensor));
      }
      Clock::time_point begin = Clock::now();
      stream.wait(tokens[3]);
      EXPECT_GE(sinceMs(begin), thread ? 0 : 3 * latencyUs / 1e3);
      EXPECT_EQ(out[3][0], 2);
      stream.drain();
      // Events are in order of begin: those of the first group follow each other, and the one of
      // the other group does not wait for them.
      std::vector<shardrt_event> all = events.sorted();
      ASSERT_EQ(all.size(), 4u);
      int besideOthers = 0;
      for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < i; ++j)
          besideOthers += all[i].start_us < all[j].start_us + all[j].duration_us - 1;
      EXPECT_GE(besideOthers, 1);
      EXPECT_LE(besideOthers, 2); // it may begin at the end of the first
      for (const shardrt_event &event : all)
        EXPECT_GE(event.duration_us, latencyUs - 1);
    }));
}
