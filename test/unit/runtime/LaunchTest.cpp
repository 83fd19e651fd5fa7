// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C functions of worlds that launchers make, on threads: facts of the caller's own, the trace
// of a world, and environments that cannot be right.
#include "runtime/include/shardrt_launch.h"
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/Ports.h"

#include <cstdlib>
#include <set>

using namespace test;
using shardrt::view;

namespace {

/// Sets variables of the environment, and takes them back.
struct Environment {
  explicit Environment(std::map<std::string, std::string> variables) : variables(variables) {
    for (auto &[name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (auto &[name, value] : variables)
      unsetenv(name.c_str());
  }
  std::map<std::string, std::string> variables;
};

Ranks::Result fromEnvironment(shardrt_config config = shardrt::defaultConfig()) {
  try {
    shardrt::communicatorFromEnvironment(config);
  } catch (const shardrt::Error &error) {
    return {error.status, error.what()};
  }
  return {};
}

} // namespace

TEST(Launch, ThereIsAWorldOfOneWithoutALauncher) {
  auto communicator = shardrt::communicatorFromEnvironment(shardrt::defaultConfig());
  EXPECT_EQ(shardrt_communicator_world_size(communicator.get()), 1);
  EXPECT_EQ(shardrt_communicator_rank(communicator.get()), 0);
  EXPECT_STREQ(shardrt_communicator_description(communicator.get()), "local, 1 process");
  EXPECT_EQ(shardrt_environment_rank(), 0);
  EXPECT_EQ(shardrt_communicator_world_size(nullptr), 0);
  EXPECT_EQ(shardrt_communicator_rank(nullptr), -1);
  auto threads = shardrt::localCommunicators(3);
  EXPECT_STREQ(shardrt_communicator_description(threads[1].get()), "local, 3 threads");
}

TEST(Launch, EnvironmentsThatCannotBeRight) {
  {
    Environment environment({{"RANK", "5"}, {"WORLD_SIZE", "4"}});
    Ranks::Result result = fromEnvironment();
    EXPECT_EQ(result.status, SHARDRT_INVALID_ARGUMENT);
    EXPECT_NE(result.message.find("RANK is 5, but WORLD_SIZE is 4"), std::string::npos)
        << result.message;
    EXPECT_EQ(shardrt_environment_rank(), -1);
  }
  // Nobody else comes.
  Environment environment({{"RANK", "0"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(ownPort())},
                           {"SHARDRT_SECRET", ownSecret()}});
  EXPECT_EQ(shardrt_environment_rank(), 0);
  shardrt_config config = shardrt::defaultConfig();
  config.timeout_s = 0.3;
  Ranks::Result result = fromEnvironment(config);
  EXPECT_EQ(result.status, SHARDRT_TIMEOUT) << result.message;
  EXPECT_NE(result.message.find("rank 1"), std::string::npos) << result.message;
  config.timeout_s = 0;
  EXPECT_EQ(fromEnvironment(config).status, SHARDRT_INVALID_ARGUMENT);
  config.struct_bytes = 3;
  EXPECT_EQ(fromEnvironment(config).status, SHARDRT_INVALID_ARGUMENT);
}

TEST(Launch, FactsOfTheCallersOwn) {
  auto ends = shardrt::localCommunicators(3);
  std::vector<std::vector<std::string>> heard(3);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      // Of different lengths, with zeros, and nothing at all.
      std::string mine(rank * 5, char('a' + rank));
      if (rank == 2)
        mine[3] = '\0';
      heard[rank] = shardrt::exchange(ends[rank], "facts", mine, 10);
    });
  for (std::thread &thread : threads)
    thread.join();
  std::string last("cccccccccc");
  last[3] = '\0';
  for (auto &one : heard)
    EXPECT_EQ(one, (std::vector<std::string>{"", "bbbbb", last}));
  // Different sizes are an error on all ranks, and so are null pointers.
  std::vector<Ranks::Result> results(3);
  threads.clear();
  for (size_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      char mine[2] = {}, all[6];
      shardrt_exchange facts{"facts", 0, mine, all, rank == 1 ? 1u : 2u, 10};
      shardrt_error *error = nullptr;
      results[rank].status = shardrt_communicator_exchange(ends[rank].get(), &facts, &error);
      results[rank].message = shardrt_error_message(error);
      shardrt_error_free(error);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (auto &result : results)
    EXPECT_EQ(result.status, SHARDRT_MISMATCH) << result.message;
  shardrt_exchange nothing{"facts", 0, nullptr, nullptr, 4, 10};
  EXPECT_EQ(shardrt_communicator_exchange(ends[0].get(), &nothing, nullptr),
            SHARDRT_INVALID_ARGUMENT);
  EXPECT_EQ(shardrt_communicator_exchange(nullptr, &nothing, nullptr), SHARDRT_INVALID_ARGUMENT);
}

TEST(Launch, TheTraceOfAWorldIsThatOfAllItsRanks) {
  Folder folder;
  writeSafetensors(folder.file("w.safetensors"), parameterFile());
  Ranks traced;
  traced.create([](shardrt_config &c) { c.flags = SHARDRT_RECORD_EVENTS; });
  traced.load(folder.file("w.safetensors"));
  std::vector<float> x = inputRows(4), y(4 * columns), total(1);
  std::string together = folder.file("together.json"), world = folder.file("world.json");
  traced.expectOk(traced.each([&](int32_t rank, shardrt::Model &model) {
    int64_t in[] = {4, depth}, out[] = {4, columns};
    shardrt_tensor input = view<const float>(x, in);
    shardrt_tensor outputs[] = {view<float>(y, out, SHARDRT_SHARED),
                                view<float>(total, {}, SHARDRT_SHARED)};
    model.run("forward", {&input, 1}, outputs);
    shardrt::check(shardrt_write_world_trace, model.get(),
                   rank == 0 ? world.c_str() : static_cast<const char *>(nullptr));
  }));
  std::vector<const shardrt_model *> models;
  for (auto &model : traced.models)
    models.push_back(model->get());
  shardrt::check(shardrt_write_trace, models.data(), models.size(), together.c_str());
  // The same entries, at times that may differ in the last digit.
  auto lines = [](const std::string &path) {
    std::ifstream file(path);
    std::multiset<std::string> out;
    for (std::string line; std::getline(file, line);) {
      size_t at = line.find("\"ts\":");
      out.insert(at == std::string::npos ? line : line.substr(0, at));
    }
    return out;
  };
  EXPECT_GT(lines(world).size(), 40u);
  EXPECT_EQ(lines(world).size(), lines(together).size());
  EXPECT_EQ(lines(world), lines(together));
}
