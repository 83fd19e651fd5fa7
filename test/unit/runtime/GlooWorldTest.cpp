// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators of processes over Gloo. Their ranks are threads of one process here, which is all
// the same to Gloo: they talk over TCP.
#include "test/unit/runtime/PluginWorlds.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <unistd.h>

using namespace shardc::rt;

#ifdef PLUGINS

namespace {

LoadedPlugin gloo() {
  return loadPlugin("gloo", [](const char *name) {
    return name == std::string("SHARDRT_PLUGIN_PATH") ? std::optional<std::string>(PLUGINS)
                                                      : std::nullopt;
  });
}

/// Each member's part of a sum over `world` ranks, whose last bits depend on the order.
std::vector<float> partsOf(uint32_t rank, size_t count) {
  std::vector<float> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(float(1 + (i * 31 + rank * 17) % 97) / float(3 + rank));
  return parts;
}

/// The sum of all parts on each rank.
std::vector<std::vector<float>> sums(std::vector<std::unique_ptr<Communicator>> ends,
                                     size_t count) {
  auto world = uint32_t(ends.size());
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
  std::vector<std::vector<float>> results(world);
  auto outcomes = test::runRanks(std::move(ends), [&](Communicator &end) {
    test::connectGroups(end, test::usualGroups(world));
    std::vector<float> data = partsOf(end.rank(), count);
    auto extent = int64_t(count);
    shardrt_collective_tensor tensor{data.data(), data.data(), &extent, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(sum.desc, end.group(test::usualGroups(world)[0]), 1, &tensor), "");
    test::runCollective(end, call, 60);
    results[end.rank()] = data;
  });
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
  return results;
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Gloo, test::pluginWorlds("tcp", gloo()));

TEST(Gloo, WorldsOfOneToEightHaveTheBitsOfThreads) {
  for (uint32_t world = 1; world <= 8; ++world) {
    auto threads = sums(makeLocalWorld(world), 1237);
    auto processes = sums(test::makePluginWorld(world, gloo()), 1237);
    EXPECT_EQ(threads, processes) << world;
  }
}

/// Threads of this process that no SIGPIPE reaches.
size_t threadsWithoutBrokenPipes() {
  size_t count = 0;
  for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:"))
        count += std::stoull(line.substr(7), nullptr, 16) >> (SIGPIPE - 1) & 1;
  }
  return count;
}

TEST(Gloo, AConnectionThatIsGoneSendsNoSignal) {
  size_t before = threadsWithoutBrokenPipes();
  auto ends = test::makePluginWorld(3, gloo());
  // Gloo's own, one of each rank, as soon as they have begun.
  for (int i = 0; i < 60000 && threadsWithoutBrokenPipes() < before + 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(threadsWithoutBrokenPipes(), before + 3);
}

TEST(Gloo, RanksMeetByTheSixthVersionOfIp) {
  int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_addr = in6addr_loopback;
  bool none = probe < 0 || bind(probe, reinterpret_cast<const sockaddr *>(&any), sizeof any) != 0;
  if (probe >= 0)
    close(probe);
  if (none)
    GTEST_SKIP() << "there is no IPv6 here";
  auto world = std::make_shared<test::ThreadControlWorld>(3);
  world->address = "::1";
  EXPECT_EQ(sums(test::makePluginWorld(world, gloo()), 1237), sums(makeLocalWorld(3), 1237));
}

TEST(Gloo, ARankThatNeverConnectsIsGivenUp) {
  auto planes = test::makeThreadControls(2);
  try {
    makePluginEnd(planes[0], gloo(), deadlineAfter(0.3));
    ADD_FAILURE() << "rank 1 never came";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_TIMEOUT) << failure.message;
    EXPECT_NE(failure.message.find("by gloo"), std::string::npos) << failure.message;
  }
  EXPECT_TRUE(planes[1]->givenUp());
}

TEST(Gloo, NothingIsWrittenAfterAFailure) {
  // Rank 0 gives up in the middle of a large transfer: rank 1 stands still with half of it.
  auto ends = test::makePluginWorld(2, gloo());
  test::Collective gather(SHARDRT_ALL_GATHER, SHARDRT_REDUCE_NONE, {{SHARDRT_U8, 1, 0, -1}});
  auto outcomes = test::runRanks(std::move(ends), [&](Communicator &end) {
    test::connectGroups(end, {{0, 1}});
    int64_t extent = 512 << 20;
    std::vector<uint8_t> in(size_t(extent / 2), 7), out(size_t(extent), 0);
    std::thread stopper;
    if (end.rank() == 0)
      stopper = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        end.abort(SHARDRT_ABORTED, "enough");
      });
    shardrt_collective_tensor tensor{in.data(), out.data(), &extent, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(gather.desc, end.group(std::vector<uint32_t>{0, 1}), 1, &tensor), "");
    try {
      while (true) // until the stopper had its turn
        test::runCollective(end, call, 600);
    } catch (const Failure &failure) {
      std::vector<uint8_t> before = out;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_TRUE(before == out);
      if (stopper.joinable())
        stopper.join();
      throw;
    }
  });
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_ABORTED) << outcome.message;
}

#else

TEST(Gloo, IsInstalled) { GTEST_SKIP() << "Gloo's headers are not installed (libgloo-dev)"; }

#endif
