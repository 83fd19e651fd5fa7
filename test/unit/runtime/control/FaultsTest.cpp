// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges that do not complete, and ranks that end: everybody learns of it, in time.
#include "test/unit/runtime/control/Planes.h"

#include <latch>

using namespace shardc::rt;
using namespace test;

namespace {

bool allGaveUp(const std::vector<Plane> &planes) {
  return std::all_of(planes.begin(), planes.end(),
                     [](const Plane &plane) { return !plane || plane->givenUp(); });
}

/// What each rank's exchange came to when those of `absent` do not come. All deadlines begin when
/// everybody else is there.
std::vector<std::string> exchangeWithout(std::vector<Plane> &planes,
                                         const std::set<uint32_t> &absent, double seconds,
                                         Topic topic = {"the barrier"}) {
  std::latch begin(std::count_if(planes.begin(), planes.end(), [&](const Plane &plane) {
    return plane && !absent.contains(plane->rank());
  }));
  return onAll(planes, [&](ControlPlane &plane) {
    if (absent.contains(plane.rank()))
      return;
    begin.arrive_and_wait();
    plane.exchange(topic, "", in(seconds));
  });
}

} // namespace

TEST(ControlFaults, TheDeadlineNamesWhoIsMissingAndWhereItIs) {
  std::vector<Plane> planes = makeWorld(7);
  planes[5]->answerWith([](std::string_view) { return "in linear at encoder (bert.py:4)"; });
  auto errors = exchangeWithout(planes, {5}, 2);
  for (uint32_t r : {0u, 1u, 2u, 3u, 4u, 6u}) {
    EXPECT_CONTAINS(errors[r], "the barrier");
    EXPECT_CONTAINS(errors[r], "it did not complete within 2 s: missing rank 5, arrived ranks "
                               "0, 1, 2, 3, 4 and 6 (rank 5 (pid ");
    EXPECT_CONTAINS(errors[r], "is in linear at encoder (bert.py:4))");
  }
  EXPECT_TRUE(eventually([&] { return allGaveUp(planes); }));
  EXPECT_EQ(planes[5]->failure()->status, SHARDRT_TIMEOUT);
  endWorld(planes);
}

TEST(ControlFaults, OtherTopicsAreADisagreement) {
  std::vector<Plane> planes = makeWorld(6);
  auto errors = onAll(planes, [](ControlPlane &plane) {
    plane.exchange({plane.rank() == 5 ? "the handshake" : "the barrier"}, "", in(never));
  });
  for (const std::string &error : errors) {
    EXPECT_CONTAINS(error, "ranks meet for different things: ");
    EXPECT_CONTAINS(error, "rank 5 is at the handshake");
  }
  EXPECT_EQ(planes[3]->failure()->status, SHARDRT_MISMATCH);
  endWorld(planes);
}

TEST(ControlFaults, WhoRefusedOrLeftIsNotWaitedFor) {
  for (bool leaves : {false, true}) {
    std::vector<Plane> planes = makeWorld(6);
    if (leaves)
      planes[4]->leave("");
    else
      planes[4]->refuse(7, "no input x");
    auto errors = exchangeWithout(planes, {4}, never, {"the handshake", 7});
    std::string reason = leaves ? "rank 4 has left and cannot take part"
                                : "rank 4 did not start this run: no input x";
    for (uint32_t r : {0u, 1u, 2u, 3u, 5u})
      EXPECT_CONTAINS(errors[r], reason);
    endWorld(planes);
  }
}

TEST(ControlFaults, ARefusalOfAnotherRunDoesNotDisturb) {
  std::vector<Plane> planes = makeWorld(3);
  planes[2]->refuse(6, "bad input");
  for (const std::string &error : exchangeWithout(planes, {}, 60, {"the handshake", 7}))
    EXPECT_EQ(error, "");
  // Who leaves after it has given its part does not either.
  auto errors = onAll(planes, [](ControlPlane &plane) {
    plane.exchange({"the end"}, "", in(60));
    plane.leave("");
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
  endWorld(planes);
}

class ControlDeath : public testing::TestWithParam<uint32_t> {};

TEST_P(ControlDeath, AllSurvivorsLearnAtOnce) {
  uint32_t victim = GetParam();
  std::vector<Plane> planes = makeWorld(22);
  planes[victim].reset(); // without leave
  EXPECT_TRUE(eventually([&] { return allGaveUp(planes); })) << "nobody waits for anything";
  std::string name = "rank " + std::to_string(victim);
  for (const Plane &plane : planes) {
    if (!plane)
      continue;
    EXPECT_EQ(plane->failure()->status, SHARDRT_ABORTED);
    EXPECT_CONTAINS(plane->failure()->message, name + ": " + name + " (pid ");
    EXPECT_CONTAINS(plane->failure()->message, "has died: its connections were closed");
    EXPECT_FALSE(plane->left(victim));
  }
  auto errors = exchangeWithout(planes, {}, never);
  for (uint32_t r = 0; r < 22; ++r)
    if (r != victim) {
      EXPECT_CONTAINS(errors[r], "the barrier: given up because of " + name);
    }
  // The others can still be asked: a gap in the tree, or a new hub, does not matter.
  uint32_t asker = victim == 21 ? 20 : 21;
  planes[3 == victim ? 4 : 3]->answerWith([](std::string_view) { return "here"; });
  EXPECT_TRUE(eventually([&] {
    auto answers = planes[asker]->ask("", std::chrono::seconds(2));
    size_t count = 0;
    for (auto &answer : answers)
      count += answer.has_value();
    return count == 21 && answers[3 == victim ? 4 : 3] == "here" && !answers[victim];
  }));
  endWorld(planes);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ControlDeath, testing::Values(0, 1, 5, 21),
                         testing::PrintToStringParamName());

TEST(ControlFaults, NewsTravelWithoutTheRanksThatLeft) {
  std::vector<Plane> planes = makeWorld(22);
  for (uint32_t r : {1u, 0u, 3u}) { // the root and two inner ranks end in order
    planes[r]->leave("");
    planes[r].reset();
  }
  // As long as no other rank has taken their place, news may take a while.
  planes[5]->leave("five");
  EXPECT_TRUE(eventually([&] {
    return std::all_of(planes.begin(), planes.end(),
                       [](const Plane &plane) { return !plane || plane->left(5) == "five"; });
  }));
  for (const Plane &plane : planes)
    EXPECT_FALSE(plane && plane->givenUp());
  planes[17]->abort(SHARDRT_PROGRAM_ERROR, "bad data");
  EXPECT_TRUE(eventually([&] { return allGaveUp(planes); }));
  for (const Plane &plane : planes)
    if (plane) {
      EXPECT_EQ(plane->failure()->message, "rank 17: bad data");
    }
  endWorld(planes);
}

TEST(ControlFaults, NewsReachThoseBehindARankThatHangs) {
  std::vector<Plane> planes = makeWorld(22);
  std::mutex held;
  std::unique_lock lock(held);
  std::atomic<bool> hangs{false};
  planes[1]->answerWith([&](std::string_view) { // its plane answers nobody meanwhile
    hangs = true;
    std::lock_guard wait(held);
    return "";
  });
  ASSERT_TRUE(eventually([&] { return hangs.load(); }));
  planes[9]->abort(SHARDRT_PROGRAM_ERROR, "bad data");
  EXPECT_TRUE(eventually([&] { // ranks 5 to 8 have rank 1 as their parent
    return std::all_of(planes.begin(), planes.end(),
                       [&](const Plane &plane) { return plane->rank() == 1 || plane->givenUp(); });
  }));
  // Rank 1 still hangs. Those who answer late are asked again.
  EXPECT_TRUE(eventually([&] {
    auto answers = planes[21]->ask("", std::chrono::seconds(1));
    EXPECT_FALSE(answers[1]);
    return std::count_if(answers.begin(), answers.end(),
                         [](const auto &answer) { return answer.has_value(); }) == 21;
  }));
  lock.unlock();
  EXPECT_TRUE(eventually([&] { return planes[1]->givenUp(); }));
  endWorld(planes);
}

TEST(ControlFaults, ManyDeathsAtOnce) {
  std::vector<Plane> planes = makeWorld(22);
  std::vector<std::thread> threads;
  for (uint32_t r : {0u, 1u, 2u, 3u, 4u, 10u})
    threads.emplace_back([&, r] { planes[r].reset(); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_TRUE(eventually([&] { return allGaveUp(planes); }));
  endWorld(planes);
}
