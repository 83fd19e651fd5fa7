// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes and share memory: the suites of all communicators, and processes that
// are killed or stopped at any moment.
#include "test/unit/runtime/Processes.h"

#include <cstring>
#include <random>

using namespace shardc::rt;

namespace {

test::WorldKind processes(const char *name, Sharing sharing) {
  test::WorldKind kind{name, {}};
  kind.runs = [sharing](uint32_t world, const test::WorldKind::Body &body) {
    return test::Processes(world, body, sharing).waitAll();
  };
  return kind;
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Processes, processes("automatic", Sharing::Automatic),
                         processes("each", Sharing::Each), processes("last", Sharing::Last));

namespace {

constexpr const char *where = "encoder.layer.3 (bert.py:42)";

/// All-reduces of random lengths, the same on all ranks, in memory that they share, until something
/// goes wrong. Each is a step of the rank; between them it is in `betweenThem`.
const shardrt_op betweenThem{"linear", "encoder.layer.4 (bert.py:51)"};
void reduceForever(Communicator &end, unsigned seed, double timeout) {
  std::mt19937 random(seed);
  constexpr int64_t most = 300000;
  end.notePosition(&betweenThem);
  Buffer data(*end.memory(), most * sizeof(float), 4096, "an operand");
  std::memset(data.data(), 0, data.size());
  std::vector<uint32_t> all(end.worldSize());
  for (uint32_t rank = 0; rank < all.size(); ++rank)
    all[rank] = rank;
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.7",
                       where);
  for (uint64_t run = 1;; ++run) {
    int64_t count = random() % 2 ? int64_t(random() % most) : int64_t(random() % 100);
    shardrt_collective_tensor tensor{data.data(), data.data(), &count, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(sum.desc, end.group(all), run, &tensor), "");
    test::runCollective(end, call, timeout);
    test::Processes::step();
  }
}

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void expectParts(const test::Outcome &outcome, std::initializer_list<std::string> parts) {
  for (const std::string &part : parts)
    EXPECT_NE(outcome.message.find(part), std::string::npos)
        << "no '" << part << "' in: " << outcome.message;
}

constexpr Sharing sharings[] = {Sharing::Each, Sharing::Last, Sharing::Automatic};

} // namespace

// Bits of the sum in order of ranks, in worlds of every small size and a large one.
TEST(SharedProcesses, WorldsOfAnySize) {
  for (uint32_t world : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 64u}) {
    Clock::time_point begin = Clock::now();
    test::Processes ranks(
        world,
        [world](Communicator &end) {
          test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
          std::vector<uint32_t> all(world);
          float wanted = 0;
          for (uint32_t rank = 0; rank < world; ++rank) {
            all[rank] = rank;
            wanted += 1.f / float(rank + 3); // rounds differently in another order
          }
          std::vector<float> data(1 + 1000 * (world % 3), 1.f / float(end.rank() + 3));
          int64_t count = int64_t(data.size());
          shardrt_collective_tensor tensor{data.data(), data.data(), &count, nullptr, nullptr};
          CollectiveCall call;
          ASSERT_EQ(call.assign(sum.desc, end.group(all), 1, &tensor), "");
          test::runCollective(end, call, 300);
          EXPECT_EQ(data, std::vector<float>(data.size(), wanted));
          end.barrier(deadlineAfter(300));
        },
        Sharing::Automatic, 300);
    for (const test::Outcome &outcome : ranks.waitAll())
      EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
    EXPECT_EQ(ranks.traces(), 0u);
    if (world == 64)
      RecordProperty("seconds_of_64_processes", std::to_string(secondsSince(begin)));
  }
}

TEST(SharedProcesses, AKilledOneEndsAllAtOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 15; ++trial) {
    uint32_t world = 2 + trial % 3, victim = uint32_t(random() % world);
    test::Processes ranks(
        world, [&](Communicator &end) { reduceForever(end, unsigned(trial), 600); },
        sharings[trial % 3]);
    ASSERT_TRUE(ranks.awaitSteps(1 + random() % 50));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    ranks.signal(victim, SIGKILL);
    std::string name = "rank " + std::to_string(victim);
    for (uint32_t rank = 0; rank < world; ++rank) {
      test::Outcome outcome = ranks.wait(rank);
      if (rank == victim)
        continue;
      EXPECT_EQ(outcome.status, SHARDRT_ABORTED) << outcome.message;
      expectParts(outcome, {"all_reduce.7", where, name});
    }
    EXPECT_EQ(ranks.traces(), 0u) << "trial " << trial;
  }
}

TEST(SharedProcesses, OneThatIsKilledWhileTheyMeetEndsAll) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 10; ++trial) {
    uint32_t victim = uint32_t(random() % 3);
    Clock::time_point begin = Clock::now();
    test::Processes ranks(
        3, [&](Communicator &end) { reduceForever(end, 1, 600); }, Sharing::Automatic, 3);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
    ranks.signal(victim, SIGKILL);
    for (const test::Outcome &outcome : ranks.waitAll())
      EXPECT_NE(outcome.status, SHARDRT_OK);
    EXPECT_LT(secondsSince(begin), 300) << "those that look for it in vain stop after 3 s";
    EXPECT_EQ(ranks.traces(), 0u) << "trial " << trial;
  }
}

TEST(SharedProcesses, AStoppedOneIsNamedAtTheDeadlineAndEndsWhenItGoesOn) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 6; ++trial) {
    constexpr double timeout = 2; // of ranks that are all at work: none is missing but the stopped
    uint32_t world = 2 + trial % 3, victim = uint32_t(random() % world);
    test::Processes ranks(
        world, [&](Communicator &end) { reduceForever(end, unsigned(trial), timeout); },
        sharings[trial % 3]);
    ASSERT_TRUE(ranks.awaitSteps(1 + random() % 50));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    ranks.signal(victim, SIGSTOP);
    std::string name = "rank " + std::to_string(victim);
    for (uint32_t rank = 0; rank < world; ++rank) {
      if (rank == victim)
        continue;
      test::Outcome outcome = ranks.wait(rank);
      EXPECT_EQ(outcome.status, SHARDRT_TIMEOUT) << outcome.message;
      expectParts(outcome,
                  {"all_reduce.7", where, "it did not complete within 2 s", "missing " + name});
      // Stopped at any moment, it may also stand between two of them.
      EXPECT_TRUE(outcome.message.find(name + " is in all_reduce.7") != std::string::npos ||
                  outcome.message.find(name + " was last seen in linear") != std::string::npos)
          << outcome.message;
    }
    EXPECT_GT(ranks.traces(), 0u) << "what the stopped one has is seen";
    ranks.signal(victim, SIGCONT);
    EXPECT_NE(ranks.wait(victim).status, SHARDRT_OK);
    EXPECT_EQ(ranks.traces(), 0u) << "trial " << trial;
  }
}
