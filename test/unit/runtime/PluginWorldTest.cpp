// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators of processes over a toy engine: what they do beside moving data.
#include "test/unit/runtime/Files.h"
#include "test/unit/runtime/PluginWorlds.h"
#include "test/unit/runtime/ToyPlugin.h"

#include <dlfcn.h>
#include <numeric>

using namespace shardc::rt;
using test::Outcome, test::ToyPlugin;

namespace {

template <bool gathers> LoadedPlugin toy() {
  static const shardrt_transport_plugin table = ToyPlugin<gathers>::table();
  return {"toy", &table, nullptr};
}

struct AllReduce {
  void run(Communicator &end, double timeout, std::vector<uint32_t> ranks, uint64_t number = 1) {
    std::vector<float> data(4, 1.0f);
    shardrt_collective_tensor tensor{data.data(), data.data(), extents, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(collective.desc, end.group(ranks), number, &tensor), "");
    test::runCollective(end, call, timeout);
  }
  test::Collective collective{
      SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.7", "bert.py:42"};
  int64_t extents[1] = {4};
};

std::vector<Outcome> run(uint32_t world, const std::function<void(Communicator &)> &body) {
  return test::runRanks(test::makePluginWorld(world, toy<false>()), [&](Communicator &end) {
    test::connectGroups(end, test::usualGroups(world));
    body(end);
  });
}

void expectContains(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Plugin, test::pluginWorlds("all_to_all", toy<false>()),
                         test::pluginWorlds("all_gather", toy<true>()));

TEST(Plugin, AMemberThatLeftAfterItsPartIsNotMissed) {
  // Rank 0 gives rank 1 something, late. Rank 2 has nothing to do and leaves before that.
  test::Collective permute(SHARDRT_PERMUTE, SHARDRT_REDUCE_NONE, {{SHARDRT_F32, 1, -1, -1}});
  permute.permute({0, 1});
  ToyPlugin<false>::slow = 0;
  auto outcomes = run(3, [&](Communicator &end) {
    std::vector<float> in(4, 2.0f), out(4);
    int64_t extent = 4;
    shardrt_collective_tensor tensor{in.data(), out.data(), &extent, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(permute.desc, end.group(std::vector<uint32_t>{0, 1, 2}), 1, &tensor), "");
    test::runCollective(end, call, 60);
    EXPECT_EQ(out[3], end.rank() == 1 ? 2.0f : 0.0f);
  });
  ToyPlugin<false>::slow = -1;
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

TEST(Plugin, AMemberThatLeftBeforeItsPartIsMissed) {
  AllReduce reduce;
  auto outcomes = run(3, [&](Communicator &end) {
    std::vector<uint32_t> pair = {0, 1}, all = {0, 1, 2};
    reduce.run(end, 60, all);
    if (end.rank() == 2)
      return;
    reduce.run(end, 60, pair);
    reduce.run(end, 60, all);
  });
  EXPECT_EQ(outcomes[2].status, SHARDRT_OK) << outcomes[2].message;
  for (uint32_t r : {0u, 1u})
    expectContains(outcomes[r].message, {"rank 2 has left and cannot take part"});
}

TEST(Plugin, AKilledRankIsNamed) {
  auto world = std::make_shared<test::ThreadControlWorld>(2);
  AllReduce reduce;
  std::vector<std::unique_ptr<Communicator>> ends(2);
  std::thread other([&] {
    ends[1] = makePluginEnd(std::make_shared<test::ThreadControl>(world, 1), toy<false>(),
                            deadlineAfter(60));
  });
  ends[0] = makePluginEnd(std::make_shared<test::ThreadControl>(world, 0), toy<false>(),
                          deadlineAfter(60));
  other.join();
  auto outcomes = test::runRanks(std::move(ends), [&](Communicator &end) {
    test::connectGroups(end, {{0, 1}});
    if (end.rank() == 1)
      world->kill(1);
    else
      reduce.run(end, 60, {0, 1});
  });
  EXPECT_EQ(outcomes[0].status, SHARDRT_ABORTED);
  expectContains(outcomes[0].message, {"all_reduce.7 (bert.py:42)", "rank 1 has died"});
}

TEST(Plugin, ARankInAnotherCollectiveIsNamedAtTheDeadline) {
  AllReduce reduce;
  auto outcomes = run(4, [&](Communicator &end) {
    end.barrier(deadlineAfter(60)); // deadlines begin when everybody is there
    if (end.rank() == 3)
      reduce.run(end, 600, {2, 3});
    else
      reduce.run(end, 2, {0, 1, 2, 3});
  });
  for (uint32_t r : {0u, 1u, 2u}) {
    EXPECT_EQ(outcomes[r].status, SHARDRT_TIMEOUT);
    expectContains(outcomes[r].message, {"missing rank 3", "rank 3 is in all_reduce.7"});
  }
  EXPECT_EQ(outcomes[3].status, SHARDRT_TIMEOUT);
}

TEST(Plugin, OneMemberAsksForAllWhoIsMissing) {
  constexpr uint32_t size = 8;
  AllReduce reduce;
  std::vector<uint32_t> all(size);
  std::iota(all.begin(), all.end(), 0u);
  for (uint32_t absent : {7u, 0u}) {
    auto world = std::make_shared<test::ThreadControlWorld>(size);
    world->answerTime = std::chrono::milliseconds(200);
    auto outcomes =
        test::runRanks(test::makePluginWorld(world, toy<false>()), [&](Communicator &end) {
          test::connectGroups(end, {all});
          end.barrier(deadlineAfter(60)); // deadlines begin when everybody is there
          if (end.rank() == absent)
            test::awaitFailure(end, 60);
          else
            reduce.run(end, 0.9, all); // before anybody asks whether it is lost
        });
    for (uint32_t r = 0; r < size; ++r)
      if (r != absent)
        expectContains(outcomes[r].message, {"missing rank", absent ? "rank 7" : "rank 0"});
    if (absent != 0)
      EXPECT_LE(world->questions, 2) << "each question goes to all ranks";
  }
}

TEST(Plugin, AnEngineThatFailsIsQuoted) {
  AllReduce reduce;
  int failures = ToyPlugin<false>::closedAfterFailure;
  auto outcomes = run(2, [&](Communicator &end) {
    end.barrier(deadlineAfter(60));
    ToyPlugin<false>::broken = SHARDRT_INTERNAL;
    reduce.run(end, 60, {0, 1});
  });
  ToyPlugin<false>::broken = SHARDRT_OK;
  for (const Outcome &outcome : outcomes)
    expectContains(outcome.message, {"all_reduce.7", "toy: the toy is broken"});
  EXPECT_EQ(ToyPlugin<false>::open, 0);
  EXPECT_EQ(ToyPlugin<false>::closedAfterFailure, failures + 2);
}

TEST(Plugin, GroupsThatWereNotConnectedAreErrors) {
  AllReduce reduce;
  auto outcomes = run(3, [&](Communicator &end) {
    if (end.rank() != 1)
      reduce.run(end, 60, {0, 2});
  });
  for (uint32_t r : {0u, 2u})
    expectContains(outcomes[r].message, {"the group was not connected"});
}

namespace {

std::string problemOf(const shardrt_transport_plugin *table) {
  try {
    checkPlugin(table, "libshardrt_x.so");
    return "";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_INCOMPATIBLE);
    return failure.message;
  }
}

Variables variables(std::map<std::string, std::string> values) {
  return [values](const char *name) {
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

} // namespace

TEST(LoadPlugin, TablesThatDoNotFitAreNamed) {
  expectContains(problemOf(nullptr), {"libshardrt_x.so", "returned null"});
  shardrt_transport_plugin table = ToyPlugin<false>::table();
  EXPECT_EQ(problemOf(&table), "");
  table.version = 7;
  expectContains(problemOf(&table), {"version 7, that of this runtime 1"});
  table.struct_bytes = 8;
  expectContains(problemOf(&table), {"its table has 8 bytes"});
  table = ToyPlugin<false>::table();
  table.open = nullptr;
  table.transfer = nullptr;
  table.launch = [](shardrt_transport_launch *, char *) { return shardrt_status(SHARDRT_OK); };
  expectContains(problemOf(&table), {"open is null", "transfer is null", "broadcast"});
}

TEST(LoadPlugin, LooksWhereItWasTold) {
  auto paths = pluginPaths("gloo", variables({{"SHARDRT_PLUGIN_PATH", "/a::/b"}}));
  ASSERT_GE(paths.size(), 4u);
  EXPECT_EQ(paths[0], "/a/libshardrt_gloo.so");
  EXPECT_EQ(paths[1], "/b/libshardrt_gloo.so");
  EXPECT_EQ(paths.back(), "libshardrt_gloo.so");
  expectContains(paths[3], {"/shardrt/libshardrt_gloo.so"});
}

TEST(LoadPlugin, ChoosesTheMpiOfTheLauncher) {
  std::pair<std::string, std::string> here{"SHARDRT_PLUGIN_PATH", "/a"};
  auto first = [&](const char *name, const char *variable) {
    return pluginPaths(name, variables({here, {variable, "4"}}))[0];
  };
  EXPECT_EQ(first("mpi", "OMPI_COMM_WORLD_SIZE"), "/a/openmpi/libshardrt_mpi.so");
  EXPECT_EQ(first("mpi", "PMI_SIZE"), "/a/mpich/libshardrt_mpi.so");
  EXPECT_EQ(first("openmpi", "PMI_SIZE"), "/a/openmpi/libshardrt_mpi.so");
  // The wrong MPI would see a world of one.
  for (const std::string &path : pluginPaths("mpi", variables({here, {"PMI_SIZE", "4"}})))
    EXPECT_EQ(path.find("openmpi"), std::string::npos) << path;
}

TEST(LoadPlugin, WhatIsNotThereIsListed) {
  try {
    loadPlugin("nowhere", variables({{"SHARDRT_PLUGIN_PATH", "/no/such/folder"}}));
    FAIL();
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_NOT_FOUND);
    expectContains(failure.message,
                   {"'nowhere'", "/no/such/folder/libshardrt_nowhere.so: there is no such file",
                    "SHARDRT_PLUGIN_PATH"});
  }
  EXPECT_THROW(loadPlugin("../evil", variables({})), Failure);
  EXPECT_THROW(loadPlugin("", variables({})), Failure);
}

TEST(LoadPlugin, LibrariesThatAreNoneAreNamed) {
  test::Folder folder;
  Variables there = variables({{"SHARDRT_PLUGIN_PATH", folder.path.string()}});
  auto problem = [&](const char *name) {
    try {
      loadPlugin(name, there);
      return Outcome{};
    } catch (const Failure &failure) {
      return Outcome{failure.status, failure.message};
    }
  };
  std::ofstream(folder.file("libshardrt_text.so")) << "not a library";
  Outcome text = problem("text");
  EXPECT_EQ(text.status, SHARDRT_NOT_FOUND);
  expectContains(text.message, {"libshardrt_text.so: ", "file too short"});
  // A library of something else.
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<const void *>(&std::printf), &library), 0);
  std::filesystem::create_symlink(std::filesystem::canonical(library.dli_fname),
                                  folder.file("libshardrt_other.so"));
  Outcome other = problem("other");
  EXPECT_EQ(other.status, SHARDRT_INCOMPATIBLE);
  expectContains(other.message,
                 {"libshardrt_other.so: it has no function shardrt_transport_query"});
}
