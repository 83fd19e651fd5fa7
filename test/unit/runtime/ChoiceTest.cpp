// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which communicator a world takes, and what all ranks say when there is none.
#include "runtime/world/Choice.h"
#include "test/unit/runtime/Ranks.h"
#include "test/unit/runtime/ThreadControl.h"

using namespace shardc::rt;

namespace {

struct Chosen {
  World world;
  shardrt_status status = SHARDRT_OK;
  std::string message;
};

/// A kind that cannot be used by some ranks; it opens ends of a local world that the test has made.
CommunicatorKind fake(const std::string &name, std::map<uint32_t, std::string> reasons,
                      std::atomic<int> *opened = nullptr) {
  CommunicatorKind kind;
  kind.name = name;
  kind.prepare = [=](const ControlPlane &plane) {
    auto found = reasons.find(plane.rank());
    return found == reasons.end() ? std::string() : found->second;
  };
  kind.open = [=](std::shared_ptr<ControlPlane>, Clock::time_point) {
    if (opened)
      ++*opened;
    return std::move(makeLocalWorld(1).front());
  };
  kind.details = [] { return std::string("made up"); };
  return kind;
}

std::vector<Chosen> choose(const std::vector<CommunicatorKind> &kinds, std::vector<RankFacts> facts,
                           std::vector<std::string> machines = {}) {
  auto shared = std::make_shared<test::ThreadControlWorld>(uint32_t(facts.size()));
  shared->machines = std::move(machines);
  auto planes = test::makeThreadControls(shared);
  std::vector<Chosen> out(facts.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < facts.size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        out[rank].world = chooseCommunicator(planes[rank], kinds, facts[rank], deadlineAfter(60));
      } catch (const Failure &failure) {
        out[rank].status = failure.status;
        out[rank].message = failure.message;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &plane : planes)
    plane->leave("");
  return out;
}

std::vector<RankFacts> ranks(size_t count, const std::string &wish = "auto") {
  return std::vector<RankFacts>(count, {wish, "0,1,2,3,", 4});
}

void expectEach(const std::vector<Chosen> &all, shardrt_status status, const std::string &message) {
  for (const Chosen &one : all) {
    EXPECT_EQ(one.status, status);
    EXPECT_EQ(one.message, message);
  }
}

} // namespace

TEST(Choice, TheFirstThatAllRanksCanUse) {
  std::atomic<int> a{0}, b{0}, c{0};
  auto all = choose(
      {fake("a", {{1, "no library"}, {2, "no library"}}, &a), fake("b", {}, &b), fake("c", {}, &c)},
      ranks(4));
  for (const Chosen &one : all) {
    ASSERT_EQ(one.status, SHARDRT_OK) << one.message;
    EXPECT_EQ(one.world.description, "b, 4 processes, made up");
    EXPECT_EQ(one.world.reason, "the first that all ranks can use; not possible:\n  a: ranks 1 and "
                                "2: no library");
    EXPECT_EQ(one.world.id, all[0].world.id);
    EXPECT_EQ(one.world.id.size(), 16u);
    EXPECT_EQ(one.world.threads, 1u) << "four processors for four ranks";
  }
  EXPECT_EQ(a, 0);
  EXPECT_EQ(b, 4);
  EXPECT_EQ(c, 0);
  EXPECT_NE(choose({fake("b", {})}, ranks(2))[0].world.id, all[0].world.id);
}

TEST(Choice, AWishIsFollowedOrRefused) {
  auto kinds = {fake("a", {}), fake("b", {}), fake("c", {{0, "not here"}})};
  auto all = choose(kinds, ranks(3, "b"));
  EXPECT_EQ(all[2].world.description, "b, 3 processes, made up");
  EXPECT_EQ(all[2].world.reason, "SHARDRT_COMMUNICATOR asks for it");
  expectEach(choose(kinds, ranks(3, "c")), SHARDRT_NOT_FOUND,
             "no communicator can be used by all ranks:\n  c: rank 0: not here");
  expectEach(choose(kinds, ranks(3, "d")), SHARDRT_INVALID_ARGUMENT,
             "SHARDRT_COMMUNICATOR is 'd', expected one of auto, a, b, c");
  auto mixed = ranks(3, "b");
  mixed[1].wish = "a";
  expectEach(choose(kinds, mixed), SHARDRT_MISMATCH,
             "ranks differ in SHARDRT_COMMUNICATOR: rank 1: a, ranks 0 and 2: b");
}

TEST(Choice, AllReasonsAreListed) {
  expectEach(choose({fake("a", {{0, "x"}, {1, "x"}}), fake("b", {{0, "y"}, {1, "z"}})}, ranks(2)),
             SHARDRT_NOT_FOUND,
             "no communicator can be used by all ranks:\n  a: all ranks: x\n  b: rank 0: y; "
             "rank 1: z");
}

TEST(Choice, ThreadsAreSharedWithTheRanksThatHaveTheSameProcessors) {
  std::vector<RankFacts> facts(5);
  facts[0] = facts[1] = {"auto", "0,1,2,3,", 4}; // share four
  facts[2] = {"auto", "4,5,6,", 3};              // bound to three of its own
  facts[3] = facts[4] = {"auto", "0,1,2,3,", 4}; // of another machine
  auto all = choose({fake("a", {})}, facts, {"m", "m", "m", "n", "o"});
  std::vector<uint32_t> threads;
  for (const Chosen &one : all)
    threads.push_back(one.world.threads);
  EXPECT_EQ(threads, (std::vector<uint32_t>{2, 2, 3, 4, 4}));
  EXPECT_EQ(all[0].world.description, "a, 5 processes on 3 hosts, made up");
}

TEST(Choice, SharedMemoryNeedsOneMachine) {
  auto all = choose({sharedMemoryKind()}, ranks(3), {"m", "n", "m"});
  expectEach(all, SHARDRT_NOT_FOUND,
             "no communicator can be used by all ranks:\n  local: all ranks: the ranks share no "
             "memory (ranks 0 and 2 on here, rank 1 on here)");
  all = choose({sharedMemoryKind()}, ranks(3));
  for (const Chosen &one : all)
    EXPECT_EQ(one.world.description, "local, 3 processes, shared memory") << one.message;
}
