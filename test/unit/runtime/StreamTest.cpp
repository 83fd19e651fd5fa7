// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives in flight: order, tokens, and failures.
#include "test/unit/runtime/StreamRanks.h"

using namespace shardc::rt;
using namespace test;

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
