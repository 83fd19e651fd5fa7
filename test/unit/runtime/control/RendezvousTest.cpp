// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds that do not come about: every rank says why, in time.
#include "test/unit/runtime/control/Planes.h"

#include "runtime/control/Handshake.h"
#include "runtime/control/Secret.h"
#include "runtime/control/Socket.h"

using namespace shardc::rt;
using namespace test;

namespace {

std::vector<ControlOptions> world(uint32_t size, double timeout) {
  std::string job = freshJob();
  std::vector<ControlOptions> out;
  for (uint32_t r = 0; r < size; ++r)
    out.push_back(optionsOf(r, size, job, timeout));
  return out;
}

std::vector<ControlOptions> worldAt(uint16_t port, uint32_t size, double timeout) {
  std::vector<ControlOptions> out = world(size, timeout);
  for (ControlOptions &each : out) {
    each.address = "127.0.0.1";
    each.ports = {port};
    each.secret = ownSecret();
  }
  return out;
}

std::string joinError(const ControlOptions &options, int32_t status) {
  Joined joined = joinAll({options});
  EXPECT_EQ(joined.status[0], status) << joined.errors[0];
  return joined.errors[0];
}

} // namespace

TEST(ControlRendezvous, MissingRanksAreNamed) {
  auto options = world(5, 3);
  options.erase(options.begin() + 3);
  options.erase(options.begin() + 1);
  Joined joined = joinAll(options);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(joined.status[i], SHARDRT_TIMEOUT);
    EXPECT_CONTAINS(joined.errors[i], "ranks 1 and 3 did not come within 3 s");
    EXPECT_CONTAINS(joined.errors[i], "rank 0 waits at 127.0.0.1:");
    EXPECT_FALSE(contains(joined.errors[i], "SHARDRT_SECRET"));
  }
  options[0].timeoutSeconds = 0.2;
  options[0].oneHost.reset();
  EXPECT_CONTAINS(joinError(options[0], SHARDRT_TIMEOUT), "they need SHARDRT_SECRET");
}

TEST(ControlRendezvous, RankZeroThatDoesNotComeIsNamed) {
  auto options = worldAt(ownPort(), 3, 0.5);
  std::string text = joinError(options[1], SHARDRT_TIMEOUT);
  EXPECT_CONTAINS(text, "rank 0 did not answer within 0.5 s (127.0.0.1:" +
                            std::to_string(options[1].ports[0]) + ": Connection refused)");
  options[2].secret = "";
  text = joinError(options[2], SHARDRT_TIMEOUT);
  EXPECT_CONTAINS(text, "is not on this host, or has not come");
  EXPECT_CONTAINS(text, "SHARDRT_SECRET");
}

TEST(ControlRendezvous, WhoAloneLacksTheSecretIsToldAtOnce) {
  auto options = worldAt(ownPort(), 3, 6);
  options[2].secret = "";
  options[2].timeoutSeconds = never;
  std::atomic<bool> deadline{false};
  std::string text;
  std::thread without([&] {
    text = joinError(options[2], SHARDRT_INVALID_ARGUMENT);
    EXPECT_FALSE(deadline) << "it must not wait for the deadline";
  });
  Joined joined = joinAll({options[0], options[1]});
  deadline = true;
  without.join();
  EXPECT_CONTAINS(text, "has SHARDRT_SECRET, and this rank has not");
  EXPECT_CONTAINS(joined.errors[0], "rank 2 did not come");
}

TEST(ControlRendezvous, RankZeroThatAloneLacksTheSecretIsSuspected) {
  auto options = worldAt(ownPort(), 2, 0.7);
  options[0].secret = "";
  options[0].job = freshJob();
  options[0].oneHost = true;
  Joined joined = joinAll(options);
  EXPECT_CONTAINS(joined.errors[0], "for ranks that have no SHARDRT_SECRET, as it has none");
  EXPECT_CONTAINS(joined.errors[1], "it listens there only if it has SHARDRT_SECRET too");
}

TEST(ControlRendezvous, AnotherSecretIsDroppedWhileTheOthersMeet) {
  auto options = worldAt(ownPort(), 3, 60);
  std::string said;
  std::mutex mutex;
  options[0].log = [&](int32_t, const std::string &text) {
    std::lock_guard lock(mutex);
    said += text + "\n";
  };
  ControlOptions intruder = options[1];
  intruder.secret = "another secret of this length";
  intruder.timeoutSeconds = 3;
  options.push_back(intruder);
  Joined joined = joinAll(options);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(joined.errors[i], "");
  EXPECT_EQ(joined.status[3], SHARDRT_TIMEOUT);
  EXPECT_CONTAINS(joined.errors[3], "it knows another secret");
  endWorld(joined.planes); // with the thread that says it
  EXPECT_CONTAINS(said, "it knows another secret");
  // Rank 0 that waits for such a rank says so.
  options = worldAt(ownPort(), 2, 3);
  options[1].secret = intruder.secret;
  joined = joinAll(options);
  EXPECT_CONTAINS(joined.errors[0], "rank 1 did not come within 3 s");
  EXPECT_CONTAINS(joined.errors[0], "connections knew another secret, the last one from 127.0.0.1");
}

TEST(ControlRendezvous, ContradictionsAreToldOnBothSides) {
  struct Case {
    std::function<void(ControlOptions &)> change;
    const char *says;
  };
  for (const Case &each : std::vector<Case>{
           {[](ControlOptions &o) { o.worldSize = 4; }, "has a world of 4 ranks, rank 0 one of 3"},
           {[](ControlOptions &o) { o.rank = 1; }, "two processes are rank 1: rank 1 (pid "},
           {[](ControlOptions &o) {
              o.rank = 5;
              o.worldSize = 6;
            },
            "has a world of 6 ranks, rank 0 one of 3"}}) {
    auto options = world(3, 60);
    each.change(options[2]);
    Joined joined = joinAll(options);
    for (size_t i : {0, 2}) {
      EXPECT_EQ(joined.status[i], SHARDRT_MISMATCH) << i;
      EXPECT_CONTAINS(joined.errors[i], each.says);
    }
    EXPECT_NE(joined.errors[1], "");
  }
}

TEST(ControlRendezvous, WhoComesLateIsToldThatTheWorldIsComplete) {
  auto options = world(2, 60);
  Joined joined = joinAll(options);
  ASSERT_EQ(joined.errors[1], "");
  EXPECT_CONTAINS(joinError(options[1], SHARDRT_MISMATCH), "two processes are rank 1");
  EXPECT_CONTAINS(joinError(options[0], SHARDRT_INVALID_ARGUMENT),
                  "another process is rank 0 of a job of this name");
  EXPECT_FALSE(joined.planes[0]->givenUp());
  EXPECT_EQ(joined.planes[1]->ask("", std::chrono::seconds(5)).size(), 2u);
  endWorld(joined.planes);
}

TEST(ControlRendezvous, AnotherVersionOfRankZeroIsNamed) {
  std::string problem;
  SocketAddress here = numericAddress("127.0.0.1", problem)[0];
  Descriptor server = listenAt(here);
  auto options = worldAt(localAddress(server).port(), 2, 3);
  std::thread old([&] {
    Descriptor socket;
    ASSERT_TRUE(eventually([&] { return bool(socket = acceptFrom(server)); }));
    std::string greeting = "SHARDRT" + std::string(1, 9) + std::string(32, 'n');
    send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL);
    server = Descriptor();
    eventually([&] { return false; }, 1);
  });
  std::string text = joinError(options[1], SHARDRT_TIMEOUT);
  old.join();
  EXPECT_CONTAINS(text, "its control plane has version 9, this one 1");
}

TEST(ControlRendezvous, RankZeroThatEndsMeanwhileIsNoticed) {
  auto options = worldAt(ownPort(), 3, never);
  options[0].timeoutSeconds = 3; // gives up long before the others would
  options.pop_back();
  Joined joined = joinAll(options);
  EXPECT_CONTAINS(joined.errors[1], "rank 2 did not come within 3 s");
  // Something that knows the secret, takes the rank and goes.
  std::string problem;
  options[1].ports = {ownPort()};
  Descriptor server =
      listenAt(numericAddress("127.0.0.1", problem)[0].withPort(options[1].ports[0]));
  std::thread zero([&] {
    Descriptor socket;
    ASSERT_TRUE(eventually([&] { return bool(socket = acceptFrom(server)); }));
    server = Descriptor();
    Handshake mine(Handshake::Side::Callee, worldKey(options[1].secret));
    std::string out, in;
    auto result = Handshake::Result::More;
    while (result == Handshake::Result::More) {
      char byte = 0;
      in.clear();
      ASSERT_TRUE(eventually([&] {
        while (in.size() < mine.wants() && recv(socket.get(), &byte, 1, 0) == 1)
          in += byte;
        return in.size() == mine.wants();
      }));
      result = mine.take(in, out);
      send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL);
      out.clear();
    }
    char byte = 0;
    eventually([&] { return recv(socket.get(), &byte, 1, 0) == 1; }); // it introduces itself
  });
  EXPECT_CONTAINS(joinError(options[1], SHARDRT_ABORTED),
                  "rank 0 ended before all ranks were there");
  zero.join();
}

TEST(ControlRendezvous, OptionsAreChecked) {
  ControlOptions options = optionsOf(2, 2, "job");
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "no rank 2 in a world of 2");
  options.rank = 1;
  options.secret = "short";
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "at least 16");
  options.secret = "";
  options.oneHost = false;
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "set SHARDRT_SECRET");
  options.oneHost.reset();
  options.address = "192.0.2.1"; // of nobody (RFC 5737)
  options.ports = {1};
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "rank 0 is on another host");
  options.job = "";
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "a name of the job");
  options.job = "job";
  options.ports = {};
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "without a port");
  options = optionsOf(0, 2, "job");
  options.interface = "no-such-interface";
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "there are: lo (127.0.0.1)");
  options.interface = "";
  options.listenFd = 0;
  EXPECT_CONTAINS(joinError(options, SHARDRT_INVALID_ARGUMENT), "no socket that listens");
  options = worldAt(ownPort(), 2, 0.3)[1];
  options.address = "no-such-host.invalid";
  EXPECT_CONTAINS(joinError(options, SHARDRT_TIMEOUT), "no-such-host.invalid, cannot be looked up");
}

TEST(ControlRendezvous, ASocketListensAtTheInterfaceAskedFor) {
  auto options = worldAt(ownPort(), 2, 60);
  options[0].interface = "lo";
  options[1].interface = "127.0.0.1";
  Joined joined = joinAll(options);
  ASSERT_EQ(joined.errors[0] + joined.errors[1], "");
  EXPECT_EQ(joined.planes[0]->peers()[1].address, "127.0.0.1");
  endWorld(joined.planes);
}

TEST(ControlRendezvous, RankZeroTakesTheNextPortOfTheList) {
  std::string problem;
  Descriptor other = listenAt(numericAddress("127.0.0.1", problem)[0]);
  uint16_t taken = localAddress(other).port();
  auto options = worldAt(taken, 4, 60);
  for (ControlOptions &each : options)
    for (uint16_t more = 1; more <= 16; ++more)
      each.ports.push_back(uint16_t(taken + more));
  // Something that listens and says nothing, or something else, is not taken for rank 0.
  std::thread service([&] {
    Descriptor socket;
    for (int i = 0; i < 3; ++i) {
      if (!eventually([&] { return bool(socket = acceptFrom(other)); }, 3))
        return;
      send(socket.get(), std::string(40, '?').data(), 40, MSG_NOSIGNAL);
    }
  });
  Joined joined = joinAll(options);
  for (const std::string &error : joined.errors)
    EXPECT_EQ(error, "");
  endWorld(joined.planes);
  service.join();
}

TEST(ControlRendezvous, APortAtWhichNobodyAnswersDoesNotHoldRanksUp) {
  std::string problem;
  Descriptor silent = listenAt(numericAddress("127.0.0.1", problem)[0]); // takes none, says nothing
  uint16_t taken = localAddress(silent).port();
  auto options = worldAt(taken, 2, 60);
  for (ControlOptions &each : options)
    for (uint16_t more = 1; more <= 16; ++more)
      each.ports.push_back(uint16_t(taken + more));
  Joined other;
  std::thread early([&] { other = joinAll({options[1]}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Joined zero = joinAll({options[0]});
  early.join();
  EXPECT_EQ(zero.errors[0] + other.errors[0], "");
  zero.planes.push_back(std::move(other.planes[0]));
  endWorld(zero.planes);
}

TEST(ControlOptions, AreReadFromVariables) {
  LaunchEnvironment launch;
  launch.rank = 0;
  launch.worldSize = 4;
  launch.localSize = 4;
  launch.job = "j";
  std::map<std::string, std::string> set = {{"SHARDRT_SECRET", "0123456789abcdef"},
                                            {"SHARDRT_INTERFACE", "lo"},
                                            {"SHARDRT_LISTEN_FD", "7"}};
  auto variables = [&](const char *name) {
    return set.contains(name) ? std::optional(set[name]) : std::nullopt;
  };
  ControlOptions options = controlOptions(launch, variables);
  EXPECT_EQ(options.oneHost, true);
  EXPECT_EQ(options.secret, "0123456789abcdef");
  EXPECT_EQ(options.interface, "lo");
  EXPECT_EQ(options.listenFd, 7);
  for (const char *bad : {"", "x", "-1", "7x", "99999999999"}) {
    set["SHARDRT_LISTEN_FD"] = bad;
    EXPECT_THROW(controlOptions(launch, variables), Failure) << bad;
  }
  launch.rank = 1;
  EXPECT_EQ(controlOptions(launch, variables).listenFd, -1) << "rank 0's alone";
}
