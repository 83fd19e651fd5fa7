// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that die, hang, disagree or refuse: every other rank gets an error that says so, in time.
#include "test/unit/runtime/Ranks.h"

#include <gtest/gtest.h>

using namespace shardc::rt;
using test::Faults;
using test::Outcome;

namespace {

const std::vector<uint32_t> everybody = {0, 1, 2, 3};

struct AllReduce {
  explicit AllReduce(const char *name = "all_reduce.7", int64_t count = 4)
      : collective(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, name,
                   "encoder.layer.3 (bert.py:42)"),
        extents{count} {}
  void run(Communicator &end, double timeout, std::vector<uint32_t> ranks = everybody,
           uint64_t number = 1) {
    std::vector<float> data(size_t(extents[0]), 1.0f);
    shardrt_collective_tensor tensor{data.data(), data.data(), extents, nullptr, nullptr};
    CollectiveCall call;
    std::string problem = call.assign(collective.desc, end.group(ranks), number, &tensor);
    ASSERT_EQ(problem, "");
    test::runCollective(end, call, timeout);
  }
  test::Collective collective;
  int64_t extents[1];
};

void expectContains(const Outcome &outcome, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(outcome.message.find(part), std::string::npos)
        << "no '" << part << "' in: " << outcome.message;
}

} // namespace

TEST_P(Faults, AStuckRankIsNamedAtTheDeadline) {
  AllReduce reduce;
  const shardrt_op op{"linear", "encoder.layer.3.output (bert.py:40)"};
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 2)
      end.notePosition(&op);
    end.barrier(deadlineAfter(60)); // deadlines begin when everybody is there
    if (end.rank() == 2)
      test::awaitFailure(end, 4);
    reduce.run(end, 2);
  });
  for (uint32_t r : {0u, 1u, 3u}) {
    EXPECT_EQ(outcomes[r].status, SHARDRT_TIMEOUT);
    expectContains(outcomes[r],
                   {"all_reduce.7", "encoder.layer.3 (bert.py:42)", "missing rank 2",
                    "arrived ranks 0, 1 and 3", "rank 2 was last seen in linear", "bert.py:40"});
  }
  EXPECT_EQ(outcomes[2].status, SHARDRT_TIMEOUT) << "a late rank must not run on alone";
}

TEST_P(Faults, ARankThatDiesIsNoticedAtOnce) {
  AllReduce reduce;
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 1)
      return; // its end is destroyed
    reduce.run(end, 600);
  });
  for (uint32_t r : {0u, 2u, 3u}) {
    EXPECT_EQ(outcomes[r].status, SHARDRT_ABORTED);
    expectContains(outcomes[r], {"all_reduce.7", "rank 1 has left"});
  }
}

TEST_P(Faults, LeavingAfterTheLastCollectiveIsNoFault) {
  AllReduce reduce;
  for (int i = 0; i < 50; ++i)
    for (const Outcome &outcome : runRanks(4, [&](Communicator &end) { reduce.run(end, 60); }))
      ASSERT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

TEST_P(Faults, ADeathInOneGroupReachesTheOther) {
  AllReduce pairs("all_reduce.pair"), all("all_reduce.all");
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 3)
      throw Failure(SHARDRT_PROGRAM_ERROR, "broken");
    pairs.run(end, 60, end.rank() < 2 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{2, 3});
    all.run(end, 60);
  });
  expectContains(outcomes[2], {"all_reduce.pair", "rank 3 has left"});
  for (uint32_t r : {0u, 1u})
    EXPECT_EQ(outcomes[r].status, SHARDRT_ABORTED) << outcomes[r].message;
}

TEST_P(Faults, DifferentOrdersAreAMismatchThatNamesBoth) {
  AllReduce a("all_reduce.a"), b("all_reduce.b");
  auto outcomes =
      runRanks(2, [&](Communicator &end) { (end.rank() == 0 ? a : b).run(end, 60, {0, 1}); });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    expectContains(outcome,
                   {"rank 0 is in all_reduce.a", "rank 1 is in all_reduce.b", "bert.py:42"});
  }
}

TEST_P(Faults, DifferentExtentsAreAMismatch) {
  AllReduce a("all_reduce.a", 4), b("all_reduce.a", 5);
  auto outcomes =
      runRanks(2, [&](Communicator &end) { (end.rank() == 0 ? a : b).run(end, 60, {0, 1}); });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    if (GetParam().namesExtents)
      expectContains(outcome, {"f32[4] and f32[5]"});
    else
      expectContains(outcome, {"all_reduce.a"});
  }
}

namespace {

/// Within one dim, of the shape [any, columns]; what a rank gives to each and gets of each.
void exchange(Communicator &end, std::vector<int64_t> gives, std::vector<int64_t> gets,
              int64_t columns = 2) {
  test::Collective collective(SHARDRT_ALL_TO_ALL, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 2, 0, 0}},
                              "all_to_all.3", "experts (moe.py:7)");
  int64_t extents[2] = {0, columns};
  for (int64_t count : gives)
    extents[0] += count;
  std::vector<float> in(64), out(64);
  shardrt_collective_tensor tensor{in.data(), out.data(), extents, gets.data(), gives.data()};
  CollectiveCall call;
  std::vector<uint32_t> ranks(everybody.begin(), everybody.begin() + ptrdiff_t(gives.size()));
  ASSERT_EQ(call.assign(collective.desc, end.group(ranks), 1, &tensor), "");
  test::runCollective(end, call, 60);
}

} // namespace

// A rank whose own counts fit must not go on either.
TEST_P(Faults, CountsThatPeersDisagreeAboutAreAMismatch) {
  auto outcomes = runRanks(4, [&](Communicator &end) {
    std::vector<int64_t> gives(4, 1), gets(4, 1);
    if (end.rank() == 2)
      gives[1] = 3; // rank 1 expects one
    exchange(end, gives, gets);
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH) << outcome.message;
    expectContains(outcome, {"all_to_all.3", "experts (moe.py:7)",
                             "rank 2 gives rank 1 3 elements of the dim, which expects 1"});
  }
}

TEST_P(Faults, WhatIsNotCutMustBeEqualInAnExchange) {
  auto outcomes = runRanks(
      2, [&](Communicator &end) { exchange(end, {1, 1}, {1, 1}, end.rank() == 0 ? 2 : 3); });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    if (GetParam().namesExtents)
      expectContains(outcome, {"f32[2, 2] and f32[2, 3]"});
    else
      expectContains(outcome, {"all_to_all.3"});
  }
}

TEST_P(Faults, DifferentRunsAreAMismatch) {
  AllReduce reduce;
  auto outcomes =
      runRanks(2, [&](Communicator &end) { reduce.run(end, 60, {0, 1}, end.rank() == 0 ? 1 : 2); });
  for (const Outcome &outcome : outcomes)
    expectContains(outcome, {"run 1 and run 2"});
}

TEST_P(Faults, HandshakeNamesRanksAndBothValues) {
  auto outcomes = runRanks(4, [&](Communicator &end) {
    Identity identity = {{"artifact hash", end.rank() == 2 ? "beef" : "cafe"},
                         {"mesh", "[\"tp\" = 4]"}};
    end.handshake(identity, 1, deadlineAfter(60));
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH);
    expectContains(outcome,
                   {"ranks differ in artifact hash", "beef on rank 2", "cafe on ranks 0, 1 and 3"});
    EXPECT_EQ(outcome.message.find("mesh"), std::string::npos) << outcome.message;
  }
}

TEST_P(Faults, ARefusedRunDoesNotMakeOthersWait) {
  AllReduce reduce;
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 0) {
      end.refuse(1, "input x: it is f32[3], expected f32[4]");
      return; // those who look for it after it has left still hear why
    }
    reduce.run(end, 60);
  });
  for (uint32_t r : {1u, 2u, 3u})
    expectContains(outcomes[r], {"rank 0 did not start this run", "input x"});
}

TEST_P(Faults, ARunThatAllRefuseLeavesTheWorldUsable) {
  AllReduce reduce;
  auto outcomes = runRanks(4, [&](Communicator &end) {
    end.refuse(1, "bad input");
    reduce.run(end, 60, everybody, 2);
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

TEST_P(Faults, AbortFromOutsideEndsAllAndStays) {
  AllReduce reduce;
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      end.abort(SHARDRT_ABORTED, "interrupted");
      end.abort(SHARDRT_ABORTED, "again");
    }
    reduce.run(end, 60);
  });
  for (const Outcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status, SHARDRT_ABORTED);
    expectContains(outcome, {"interrupted"});
  }
}

TEST_P(Faults, BarrierAgainstCollectiveIsAMismatch) {
  AllReduce reduce;
  auto outcomes = runRanks(4, [&](Communicator &end) {
    if (end.rank() == 0)
      end.barrier(deadlineAfter(60));
    else
      reduce.run(end, 60);
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH) << outcome.message;
}
