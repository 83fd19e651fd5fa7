// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs that fail before and after they have begun to change parameters.
#include "test/unit/runtime/Artifact.h"

#include <filesystem>

using namespace test;
using shardrt::view;

namespace {

class Torn : public ::testing::Test {
protected:
  Folder folder;
  Ranks ranks;

  void SetUp() override {
    ranks.create();
    writeSafetensors(folder.file("w"), parameterFile());
    ranks.load(folder.file("w"));
  }
  /// ids[0] and ids[1] are those of ranks 0 and 1, the others of ranks 2 and 3.
  std::vector<Ranks::Result> step(std::vector<int64_t> ids) {
    return ranks.each([&](int32_t, shardrt::Model &model) {
      int64_t extents[] = {4};
      float sum = 0;
      shardrt_tensor input = view<const int64_t>(std::span<const int64_t>(ids), extents);
      shardrt_tensor output = view<float>({&sum, 1}, {}, SHARDRT_LOCAL);
      model.run("step", {&input, 1}, {&output, 1});
    });
  }
  /// Of one rank, which asks nobody.
  Ranks::Result callsOf(int32_t rank, int64_t &value) {
    return outcome([&] {
      ranks.models[size_t(rank)]->getState("calls", view<int64_t>({&value, 1}, {}, SHARDRT_LOCAL));
    });
  }
  void expectCalls(int32_t rank, int64_t wanted) {
    int64_t value = -1;
    Ranks::Result result = callsOf(rank, value);
    EXPECT_EQ(result.status, SHARDRT_OK) << result.message;
    EXPECT_EQ(value, wanted) << "rank " << rank;
  }
  void expectTorn(int32_t rank, const char *reason) {
    shardrt::Model &model = *ranks.models[size_t(rank)];
    int64_t value = 0, extents[] = {columns};
    std::vector<float> sums(columns);
    shardrt_tensor output = view<float>(sums, extents, SHARDRT_LOCAL);
    for (const Ranks::Result &result :
         {callsOf(rank, value),
          outcome([&] { model.setState("calls", view<int64_t>({&value, 1}, {}, SHARDRT_LOCAL)); }),
          outcome([&] { model.run("columns", {}, {&output, 1}); })}) {
      EXPECT_EQ(result.status, SHARDRT_TORN) << result.message;
      EXPECT_NE(result.message.find("load a checkpoint"), std::string::npos) << result.message;
      EXPECT_NE(result.message.find(reason), std::string::npos) << result.message;
    }
  }
  template <typename Action> static Ranks::Result outcome(Action action) {
    try {
      action();
    } catch (const shardrt::Error &error) {
      return {error.status, error.what()};
    }
    return {};
  }
};

TEST_F(Torn, ARunThatIsCompleteChangesParametersInPlace) {
  for (int repeat = 1; repeat <= 3; ++repeat) {
    for (const Ranks::Result &result : step({1, 2, 3, 4}))
      EXPECT_EQ(result.status, SHARDRT_OK) << result.message;
    for (int32_t rank = 0; rank < world; ++rank)
      expectCalls(rank, 41 + repeat * (rank < 2 ? 3 : 7));
  }
}

TEST_F(Torn, AFailureBeforeTheFirstWriteLeavesParametersAsTheyWere) {
  std::vector<Ranks::Result> results = step({1, 2, -1, 4});
  for (int32_t rank : {2, 3}) {
    EXPECT_EQ(results[size_t(rank)].status, SHARDRT_PROGRAM_ERROR);
    expectCalls(rank, 41);
  }
  // The others had begun when they learned of it.
  for (int32_t rank : {0, 1}) {
    EXPECT_EQ(results[size_t(rank)].status, SHARDRT_ABORTED);
    expectTorn(rank, "index -1 is out of range");
  }
}

TEST_F(Torn, AFailureAfterTheFirstWriteIsToldUntilParametersAreLoaded) {
  std::vector<Ranks::Result> results = step({1, 1000, 3, 4});
  for (int32_t rank = 0; rank < world; ++rank) {
    EXPECT_EQ(results[size_t(rank)].status, rank < 2 ? SHARDRT_PROGRAM_ERROR : SHARDRT_ABORTED);
    expectTorn(rank, "index 1000 is out of range");
  }
  // What cannot be loaded heals nothing.
  writeSafetensors(folder.file("bad"), {});
  EXPECT_THROW(ranks.models[0]->loadParameters(folder.file("bad")), shardrt::Error);
  expectTorn(0, "index 1000 is out of range");
  ranks.load(folder.file("w"));
  for (int32_t rank = 0; rank < world; ++rank)
    expectCalls(rank, 41);
}

TEST_F(Torn, ATornRankRefusesToSaveForAll) {
  step({1, 2, -1, 4}); // ranks 2 and 3 could
  auto results = ranks.each([&](int32_t, shardrt::Model &model) { model.save(folder.file("c")); });
  for (const Ranks::Result &result : results)
    EXPECT_NE(result.status, SHARDRT_OK) << result.message;
  EXPECT_FALSE(std::filesystem::exists(folder.file("c")));
}

} // namespace
