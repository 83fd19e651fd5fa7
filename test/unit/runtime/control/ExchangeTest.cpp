// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds in which everything goes well: joining, exchanges, news and questions.
#include "test/unit/runtime/control/Planes.h"

#include "runtime/control/Secret.h"
#include "runtime/control/Socket.h"
#include "runtime/control/Tree.h"

using namespace shardc::rt;
using namespace test;

namespace {

/// The parts of a rank in a round: of other lengths for each, empty ones too.
std::string partOf(uint32_t rank, uint32_t round) {
  return std::string((rank * 7 + round * 3) % 11, char('a' + rank % 26)) + (round % 2 ? "" : "\0x");
}

void exchangeRounds(ControlPlane &plane, uint32_t rounds) {
  for (uint32_t round = 0; round < rounds; ++round) {
    auto parts = plane.exchange({"the round", round}, partOf(plane.rank(), round), in(60));
    ASSERT_EQ(parts.size(), plane.worldSize());
    for (uint32_t r = 0; r < parts.size(); ++r)
      ASSERT_EQ(parts[r], partOf(r, round)) << "round " << round << ", rank " << r;
  }
}

} // namespace

TEST(ControlTree, EveryRankIsBelowItsParentOnce) {
  for (uint32_t size : {1u, 2u, 5u, 6u, 21u, 22u, 64u, 1000u}) {
    std::vector<uint32_t> sizes(size, 1);
    for (uint32_t r = size - 1; r > 0; --r) {
      uint32_t parent = treeParent(r);
      ASSERT_LT(parent, r);
      EXPECT_GE(r, firstChild(parent, size));
      EXPECT_LT(r, endChild(parent, size));
      sizes[parent] += sizes[r];
    }
    for (uint32_t r = 0; r < size; ++r)
      ASSERT_EQ(subtreeSize(r, size), sizes[r]) << r << " of " << size;
  }
  EXPECT_TRUE(inSubtree(7, 1));
  EXPECT_FALSE(inSubtree(7, 2));
  EXPECT_FALSE(inSubtree(0, 1));
}

class ControlExchange : public testing::TestWithParam<uint32_t> {};

TEST_P(ControlExchange, GivesAllRanksAllParts) {
  std::vector<Plane> planes = makeWorld(GetParam());
  for (const std::string &error : onAll(planes, [](ControlPlane &p) { exchangeRounds(p, 20); }))
    EXPECT_EQ(error, "");
  for (const Plane &plane : planes) {
    ASSERT_TRUE(plane);
    EXPECT_FALSE(plane->givenUp());
    ASSERT_EQ(plane->peers().size(), GetParam());
    for (const Peer &peer : plane->peers()) {
      EXPECT_EQ(peer.pid, getpid());
      EXPECT_EQ(peer.address, "127.0.0.1");
      EXPECT_EQ(peer.machine, plane->peers()[0].machine);
    }
  }
  endWorld(planes);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ControlExchange, testing::Values(1, 2, 3, 5, 6, 8, 22),
                         testing::PrintToStringParamName());

TEST(ControlPlaneTcp, LongPartsAreCarried) {
  std::vector<Plane> planes = makeWorld(7);
  auto errors = onAll(planes, [](ControlPlane &plane) {
    std::string mine(3000000 + plane.rank(), char('0' + plane.rank()));
    auto parts = plane.exchange({"long parts"}, mine, in(60));
    for (uint32_t r = 0; r < 7; ++r)
      ASSERT_TRUE(parts[r] == std::string(3000000 + r, char('0' + r)));
  });
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
  endWorld(planes);
}

TEST(ControlPlaneTcp, PartsThatAreTooLongForOneMessageAreAnErrorOfAll) {
  std::vector<Plane> planes = makeWorld(3);
  auto errors = onAll(planes, [](ControlPlane &plane) {
    plane.exchange({"the table"}, std::string(plane.rank() == 2 ? 90000000 : 10, 'x'), in(60));
  });
  for (const std::string &error : errors)
    EXPECT_NE(error.find("the table: 90000000 bytes of each of 3 ranks are more than the 256 MiB"),
              std::string::npos)
        << error;
  for (Plane &plane : planes)
    EXPECT_EQ(plane->failure()->status, SHARDRT_INVALID_ARGUMENT);
}

TEST(ControlPlaneTcp, RanksMeetAtAnAddressWithASecret) {
  for (const char *address : {"127.0.0.1", "localhost", "::1"}) {
    std::string problem;
    std::vector<SocketAddress> found = resolve(address, problem);
    if (found.empty() || !found[0].isOwn())
      continue; // no IPv6 here
    uint16_t port = ownPort(found[0].storage.ss_family);
    std::vector<ControlOptions> options;
    for (uint32_t r = 0; r < 6; ++r) {
      options.push_back(optionsOf(r, 6, ""));
      options[r].address = address;
      options[r].ports = {port, uint16_t(port + 1)};
      options[r].secret = ownSecret();
    }
    Joined joined = joinAll(options);
    for (const std::string &error : joined.errors)
      EXPECT_EQ(error, "") << address;
    onAll(joined.planes, [](ControlPlane &plane) { exchangeRounds(plane, 3); });
    endWorld(joined.planes);
  }
}

TEST(ControlPlaneTcp, RankZeroTakesOverASocketThatListens) {
  std::string problem;
  SocketAddress any = numericAddress("127.0.0.1", problem)[0];
  Descriptor socket = listenAt(any);
  uint16_t port = localAddress(socket).port();
  std::vector<ControlOptions> options;
  for (uint32_t r = 0; r < 3; ++r) {
    options.push_back(optionsOf(r, 3, ""));
    options[r].address = "127.0.0.1";
    options[r].ports = {port};
    options[r].secret = makeSecret();
    options[r].secret = options[0].secret;
  }
  options[0].listenFd = dup(socket.get());
  socket = Descriptor();
  Joined joined = joinAll(options);
  for (const std::string &error : joined.errors)
    EXPECT_EQ(error, "");
  endWorld(joined.planes);
}

TEST(ControlPlaneTcp, AQuestionIsAnsweredByAll) {
  std::vector<Plane> planes = makeWorld(9);
  for (Plane &plane : planes)
    plane->answerWith([r = plane->rank()](std::string_view question) {
      return question.empty() ? "linear " + std::to_string(r)
                              : std::string(question) + std::to_string(r);
    });
  for (uint32_t asker : {0u, 8u, 3u}) {
    auto answers = planes[asker]->ask("where ", std::chrono::seconds(10));
    ASSERT_EQ(answers.size(), 9u);
    for (uint32_t r = 0; r < 9; ++r)
      EXPECT_EQ(answers[r], "where " + std::to_string(r)) << asker;
  }
  EXPECT_TRUE(eventually([&] { return planes[8]->lastSeen(3).has_value(); }, 30));
  EXPECT_EQ(planes[8]->lastSeen(3)->where, "linear 3");
  // It also works when the world was given up.
  planes[5]->abort(SHARDRT_ABORTED, "on purpose");
  EXPECT_EQ(planes[2]->ask("", std::chrono::seconds(10))[6], "linear 6");
  endWorld(planes);
}

TEST(ControlPlaneTcp, NewsReachAllRanks) {
  std::vector<Plane> planes = makeWorld(7);
  std::atomic<int> wakes{0};
  planes[6]->onChange([&] { ++wakes; });
  planes[4]->refuse(3, "bad input");
  EXPECT_TRUE(eventually([&] {
    return std::all_of(planes.begin(), planes.end(),
                       [](const Plane &plane) { return plane->refused(4, 3) == "bad input"; });
  }));
  EXPECT_FALSE(planes[0]->refused(4, 2));
  EXPECT_FALSE(planes[0]->refused(5, 3));
  planes[5]->leave("did two runs");
  EXPECT_TRUE(eventually([&] {
    return std::all_of(planes.begin(), planes.end(),
                       [](const Plane &plane) { return plane->left(5) == "did two runs"; });
  }));
  EXPECT_FALSE(planes[0]->left(4));
  EXPECT_FALSE(planes[0]->givenUp());
  EXPECT_EQ(wakes.load() >= 2, true);
  planes[1]->abort(SHARDRT_PROGRAM_ERROR, "an index outside of a table");
  EXPECT_TRUE(eventually([&] {
    return std::all_of(planes.begin(), planes.end(),
                       [](const Plane &plane) { return plane->givenUp(); });
  }));
  planes[2]->abort(SHARDRT_INTERNAL, "another reason");
  for (const Plane &plane : planes) {
    ASSERT_TRUE(plane->failure());
    EXPECT_EQ(plane->failure()->status, SHARDRT_PROGRAM_ERROR);
    EXPECT_EQ(plane->failure()->message, "rank 1: an index outside of a table");
  }
  endWorld(planes);
}
