// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An artifact over a communicator that the caller brings, and tables that cannot be used.
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/TableWorld.h"

using namespace test;
using shardrt::view;

namespace {

std::vector<shardrt::Communicator> bring(bool native, std::atomic<int> *destroyed = nullptr) {
  auto toy = std::make_shared<ToyWorld>(world);
  std::vector<shardrt::Communicator> ends;
  for (int32_t rank = 0; rank < world; ++rank)
    ends.push_back(shardrt::bringCommunicator(
        TableEnd::functions(), new TableEnd{toy, uint32_t(rank), native, destroyed}, rank, world));
  return ends;
}

class Brought : public ::testing::TestWithParam<bool> {
protected:
  Folder folder;
  std::string weightFile() {
    writeSafetensors(folder.file("w.safetensors"), parameterFile());
    return folder.file("w.safetensors");
  }
  /// y of forward on every rank, with x of the given type on rank 0.
  std::vector<std::vector<float>> forward(Ranks &ranks, int64_t rows, bool badOnRankZero,
                                          std::vector<Ranks::Result> &results) {
    std::vector<float> x = inputRows(rows);
    std::vector<double> bad(x.size());
    std::vector<std::vector<float>> y(world, std::vector<float>(size_t(rows * columns)));
    results = ranks.each([&](int32_t rank, shardrt::Model &model) {
      int64_t in[] = {rows, depth}, out[] = {rows, columns};
      float total = 0;
      shardrt_tensor input =
          badOnRankZero && rank == 0 ? view<const double>(bad, in) : view<const float>(x, in);
      shardrt_tensor outputs[] = {view<float>(y[size_t(rank)], out), view<float>({&total, 1}, {})};
      model.run("forward", {&input, 1}, outputs);
    });
    return y;
  }
};

template <typename Action> Ranks::Result outcome(Action action) {
  try {
    action();
  } catch (const shardrt::Error &error) {
    return {error.status, error.what()};
  }
  return {};
}
void expectError(const Ranks::Result &result, shardrt_status status,
                 std::initializer_list<const char *> parts) {
  EXPECT_EQ(result.status, status) << result.message;
  for (const char *part : parts)
    EXPECT_NE(result.message.find(part), std::string::npos)
        << "no '" << part << "' in: " << result.message;
}

} // namespace

INSTANTIATE_TEST_SUITE_P(Table, Brought, ::testing::Bool(), [](const auto &info) {
  return std::string(info.param ? "native" : "all_to_all");
});

TEST_P(Brought, RunsToTheBitsOfThreads) {
  for (int64_t rows : {8, 7, 1}) {
    std::vector<Ranks::Result> results;
    Ranks threads, brought(bring(GetParam()));
    for (Ranks *ranks : {&threads, &brought}) {
      ranks->create();
      ranks->load(weightFile());
    }
    auto wanted = forward(threads, rows, false, results);
    threads.expectOk(results);
    auto got = forward(brought, rows, false, results);
    brought.expectOk(results);
    EXPECT_EQ(got, wanted) << rows << " rows";
    std::vector<double> expected = expectedRows(rows);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[3][i], expected[i], 1e-4);
  }
}

TEST_P(Brought, ARefusedRunEndsTheOthersAtOnce) {
  Ranks ranks(bring(GetParam()));
  ranks.create();
  ranks.load(weightFile());
  std::vector<Ranks::Result> results;
  forward(ranks, 4, true, results);
  expectError(results[0], SHARDRT_INVALID_ARGUMENT, {"input x: it is f64[4, 6]"});
  for (int32_t r = 1; r < world; ++r)
    expectError(results[size_t(r)], SHARDRT_ABORTED, {"rank 0 did not start this run", "input x"});
}

TEST_P(Brought, AProgramErrorEndsAllRanks) {
  Ranks ranks(bring(GetParam()));
  ranks.create();
  ranks.load(weightFile());
  auto results = ranks.each([&](int32_t, shardrt::Model &model) {
    int64_t ids[] = {1, 2, 3, -1}, extents[] = {4};
    float sum = 0;
    shardrt_tensor input = view<const int64_t>(std::span<const int64_t>(ids), extents);
    shardrt_tensor output = view<float>({&sum, 1}, {}, SHARDRT_LOCAL);
    model.run("lookup", {&input, 1}, {&output, 1});
  });
  for (int32_t r : {0, 1})
    expectError(results[size_t(r)], SHARDRT_ABORTED, {"all_reduce.1", "index -1 is out of range"});
  for (int32_t r : {2, 3})
    expectError(results[size_t(r)], SHARDRT_PROGRAM_ERROR, {"embeddings (model.py:3)"});
}

TEST_P(Brought, AStuckRankTimesOutWithANamedPlace) {
  Ranks ranks(bring(GetParam()));
  ranks.create([](shardrt_config &config) { config.timeout_s = 2; });
  ranks.load(weightFile());
  auto results = ranks.each([&](int32_t, shardrt::Model &model) {
    int64_t stuck = sleeper(3, 6000), extents[] = {1};
    float count = 0;
    shardrt_tensor input = view<const int64_t>(std::span<const int64_t>(&stuck, 1), extents);
    shardrt_tensor output = view<float>({&count, 1}, {}, SHARDRT_LOCAL);
    model.run("slow", {&input, 1}, {&output, 1});
  });
  expectError(results[1], SHARDRT_TIMEOUT,
              {"all_reduce.1 (total (model.py:8))", "missing rank 3", "last seen in linear"});
  expectError(results[3], SHARDRT_TIMEOUT, {"all_reduce.1"});
}

TEST_P(Brought, ContextsLiveUntilHandleAndModelAreGone) {
  for (bool handleFirst : {false, true}) {
    std::atomic<int> destroyed{0};
    Ranks ranks(bring(GetParam(), &destroyed));
    ranks.create();
    (handleFirst ? ranks.ends.clear() : ranks.models.clear());
    EXPECT_EQ(destroyed, 0);
    (handleFirst ? ranks.models.clear() : ranks.ends.clear());
    EXPECT_EQ(destroyed, world);
  }
}

TEST(BroughtTables, ThatCannotBeUsed) {
  shardrt_communicator *communicator = nullptr;
  auto create = [&](const shardrt_communicator_functions *functions, int32_t rank, int32_t size) {
    return outcome([&] {
      shardrt::check(shardrt_communicator_create, functions, static_cast<void *>(nullptr), rank,
                     size, &communicator);
    });
  };
  shardrt_communicator_functions none{};
  expectError(create(nullptr, 0, 1), SHARDRT_INVALID_ARGUMENT, {"functions is null"});
  expectError(create(&none, 0, 0), SHARDRT_INVALID_ARGUMENT,
              {"struct_bytes is 0, this runtime (shardrt.h 2.4) knows", "world_size is 0"});
  none.struct_bytes = sizeof none;
  expectError(
      create(&none, 2, 2), SHARDRT_INVALID_ARGUMENT,
      {"exchange is null", "transfer is null", "abort is null", "rank is 2 in a world of 2"});
  EXPECT_EQ(communicator, nullptr);
  shardrt_communicator_functions good = TableEnd::functions();
  EXPECT_EQ(shardrt_communicator_create(&good, nullptr, 0, 1, nullptr, nullptr),
            SHARDRT_INVALID_ARGUMENT);
}

TEST(BroughtTables, OfAnotherWorldThanTheConfiguration) {
  Ranks ranks(bring(false));
  shardrt_config config = ranks.config(1);
  config.communicator = ranks.ends[2].get();
  expectError(outcome([&] { shardrt::Model(ranks.artifact.manifest(), config); }),
              SHARDRT_INVALID_ARGUMENT, {"the communicator is rank 2 of 4"});
}
