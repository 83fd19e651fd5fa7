// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs through the C ABI of which rank 0 has the tensors.
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/TableWorld.h"

using namespace test;
using shardrt::view;

namespace {

std::vector<shardrt::Communicator> ends(bool table) {
  if (!table)
    return shardrt::localCommunicators(world);
  auto toy = std::make_shared<ToyWorld>(world);
  std::vector<shardrt::Communicator> out;
  for (int32_t rank = 0; rank < world; ++rank)
    out.push_back(shardrt::bringCommunicator(
        TableEnd::functions(), new TableEnd{toy, uint32_t(rank), false, nullptr}, rank, world));
  return out;
}

class RootRun : public ::testing::TestWithParam<bool> {
protected:
  Folder folder;
  Ranks ranks{ends(GetParam())};
  RootRun() {
    writeSafetensors(folder.file("w.safetensors"), parameterFile());
    ranks.create();
    ranks.load(folder.file("w.safetensors"));
  }

  static shardrt_tensor nothing() {
    shardrt_tensor tensor{};
    tensor.scope = SHARDRT_ROOT;
    return tensor;
  }
  static void expectRows(const std::vector<float> &y, int64_t rows) {
    std::vector<double> wanted = expectedRows(rows);
    ASSERT_EQ(y.size(), wanted.size());
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], wanted[i], 1e-4) << i;
  }
  /// What `forward` returns with x on rank 0 only; `adjust` changes what a rank passes.
  using Adjust = std::function<void(int32_t, shardrt_tensor &, shardrt_tensor (&)[2])>;
  std::vector<Ranks::Result> forward(int64_t rows, std::vector<float> &y, float &total,
                                     const Adjust &adjust = {}) {
    std::vector<float> x = inputRows(rows);
    y.assign(size_t(rows * columns), -99);
    total = -99;
    return ranks.each([&](int32_t rank, shardrt::Model &model) {
      int64_t in[] = {rows, depth}, out[] = {rows, columns};
      shardrt_tensor input = nothing(), outputs[] = {nothing(), nothing()};
      if (rank == 0) {
        input = view<const float>(x, in, SHARDRT_ROOT);
        outputs[0] = view<float>(y, out, SHARDRT_ROOT);
        outputs[1] = view<float>({&total, 1}, {}, SHARDRT_ROOT);
      }
      if (adjust)
        adjust(rank, input, outputs);
      model.run("forward", {&input, 1}, outputs);
    });
  }
};

void expectEach(const std::vector<Ranks::Result> &results, shardrt_status status,
                std::initializer_list<const char *> parts) {
  for (const Ranks::Result &result : results) {
    EXPECT_EQ(result.status, status) << result.message;
    for (const char *part : parts)
      EXPECT_NE(result.message.find(part), std::string::npos)
          << "no '" << part << "' in: " << result.message;
  }
}

} // namespace

INSTANTIATE_TEST_SUITE_P(, RootRun, ::testing::Bool(),
                         [](auto &info) { return info.param ? "Table" : "Threads"; });

TEST_P(RootRun, InputsAndOutputsOfRankZero) {
  for (int64_t rows : {8, 7, 1, 64, 3, 8}) {
    std::vector<float> y;
    float total;
    ranks.expectOk(forward(rows, y, total));
    expectRows(y, rows);
    double wanted = 0;
    for (double value : expectedRows(rows))
      wanted += value;
    EXPECT_NEAR(total, wanted, 1e-3);
  }
}

TEST_P(RootRun, OtherScopesBesideIt) {
  // x of rank 0, y of each rank, the total everywhere.
  constexpr int64_t rows = 7;
  std::vector<float> x = inputRows(rows);
  std::vector<double> wanted = expectedRows(rows);
  ranks.expectOk(ranks.each([&](int32_t rank, shardrt::Model &model) {
    int64_t begin = rank / 2 * 4, mine = rank / 2 == 0 ? 4 : 3;
    int64_t in[] = {rows, depth}, out[] = {mine, columns};
    shardrt_tensor input = rank == 0 ? view<const float>(x, in, SHARDRT_ROOT) : nothing();
    std::vector<float> y(size_t(mine * columns)), total(1);
    shardrt_tensor outputs[] = {view<float>(y, out, SHARDRT_LOCAL), view<float>(total, {})};
    model.run("forward", {&input, 1}, outputs);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], wanted[size_t(begin * columns) + i], 1e-4);
  }));
  // x everywhere, y on rank 0.
  std::vector<float> y;
  float total;
  ranks.expectOk(forward(rows, y, total, [&](int32_t, shardrt_tensor &input, auto &) {
    static const int64_t in[] = {rows, depth};
    input = view<const float>(x, in);
  }));
  expectRows(y, rows);
}

TEST_P(RootRun, StridesOnRankZero) {
  constexpr int64_t rows = 5;
  std::vector<float> x = inputRows(rows), transposed(x.size()), wide(size_t(rows * 20), -99);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      transposed[size_t(k * rows + i)] = x[size_t(i * depth + k)];
  static const int64_t inStrides[] = {1, rows}, outStrides[] = {20, 2};
  std::vector<float> y;
  float total;
  ranks.expectOk(forward(rows, y, total, [&](int32_t rank, shardrt_tensor &input, auto &outputs) {
    if (rank != 0)
      return;
    input.data = transposed.data();
    input.strides = inStrides;
    outputs[0].data = wide.data();
    outputs[0].strides = outStrides;
  }));
  std::vector<double> wanted = expectedRows(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      EXPECT_NEAR(wide[size_t(i * 20 + 2 * j)], wanted[size_t(i * columns + j)], 1e-4);
      EXPECT_EQ(wide[size_t(i * 20 + 2 * j + 1)], -99) << "between strides nothing is written";
    }
}

TEST_P(RootRun, AReplicatedInputIsBroadcast) {
  int64_t three = sleeper(3, 2500);
  std::vector<float> counts(world, -1);
  ranks.expectOk(ranks.each([&](int32_t rank, shardrt::Model &model) {
    static const int64_t one[] = {1};
    shardrt_tensor input =
        rank == 0 ? view<const int64_t>({&three, 1}, one, SHARDRT_ROOT) : nothing();
    shardrt_tensor output = view<float>({&counts[size_t(rank)], 1}, {});
    auto begin = std::chrono::steady_clock::now();
    model.run("slow", {&input, 1}, {&output, 1});
    // Rank 3, which the input names, sleeps; its partner over dp waits for it.
    if (rank == 3 || rank == 1)
      EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  }));
  for (float count : counts)
    EXPECT_EQ(count, 2);
}

TEST_P(RootRun, AllRanksRefuseWhatRankZeroRefusesAndGoOn) {
  std::vector<float> y;
  float total;
  static const int64_t narrow[] = {7, depth - 1};
  auto results = forward(7, y, total, [](int32_t rank, shardrt_tensor &input, auto &) {
    if (rank == 0)
      input.extents = narrow;
  });
  expectEach(results, SHARDRT_INVALID_ARGUMENT, {"dim 1 of input x is 5, expected 6"});
  EXPECT_EQ(results[2].message.rfind("rank 0 did not start this run: inputs of forward", 0), 0u)
      << results[2].message;
  // An output that is too short, and data that is missing.
  results = forward(7, y, total, [](int32_t rank, shardrt_tensor &input, auto &outputs) {
    if (rank == 0) {
      outputs[0].extents = narrow;
      outputs[1].data = nullptr;
    }
  });
  expectEach(results, SHARDRT_INVALID_ARGUMENT,
             {"output y: it is f32[7, 5], expected f32[7, 9]", "output total: its data is null"});
  results = forward(7, y, total, [](int32_t rank, shardrt_tensor &input, auto &) {
    if (rank == 0)
      input.data = nullptr;
  });
  expectEach(results, SHARDRT_INVALID_ARGUMENT, {"input x: its data is null"});
  ranks.expectOk(forward(7, y, total));
  expectRows(y, 7);
}

TEST_P(RootRun, AllRanksRefuseWhatAnotherRankRefuses) {
  std::vector<float> x = inputRows(7), y(7 * columns), total(1);
  auto run = [&](const char *entryOfRankTwo) {
    return ranks.each([&](int32_t rank, shardrt::Model &model) {
      static const int64_t in[] = {7, depth}, out[] = {7, columns};
      shardrt_tensor input = nothing(), outputs[] = {nothing(), nothing()};
      if (rank == 0) {
        input = view<const float>(x, in, SHARDRT_ROOT);
        outputs[0] = view<float>(y, out, SHARDRT_ROOT);
        outputs[1] = view<float>(total, {}, SHARDRT_ROOT);
      }
      model.run(rank == 2 ? entryOfRankTwo : "forward", {&input, 1}, outputs);
    });
  };
  auto results = run("backward");
  expectEach(results, SHARDRT_NOT_FOUND, {"the program has no entry backward"});
  EXPECT_EQ(results[0].message.rfind("rank 2 did not start this run: ", 0), 0u);
  ranks.expectOk(run("forward"));
  // A rank that has lost its parameters.
  ranks.models[3].reset();
  ranks.models[3] = std::make_unique<shardrt::Model>(ranks.artifact.manifest(), ranks.config(3));
  results = run("forward");
}

TEST_P(RootRun, ScopesThatRanksMixAreAMismatchThatNamesThem) {
  std::vector<float> y, x = inputRows(7);
  float total;
  // In the first run, a rank that has everything itself.
  auto results = forward(7, y, total, [&](int32_t rank, shardrt_tensor &input, auto &outputs) {
    static const int64_t in[] = {7, depth}, out[] = {7, columns};
    static std::vector<float> other(7 * columns + 1);
    if (rank == 1) {
      input = view<const float>(x, in);
      outputs[0] =
          view<float>(std::span<float>(other).first(other.size() - 1), out, SHARDRT_SHARED);
      outputs[1] = view<float>(std::span<float>(other).last(1), {}, SHARDRT_SHARED);
    }
  });
  expectEach(results, SHARDRT_MISMATCH,
             {"tensors of SHARDRT_ROOT: input 0, output 0, output 1 on ranks 0, 2 and 3, none on "
              "rank 1"});
}

TEST_P(RootRun, ScopesThatRanksMixLater) {
  std::vector<float> y, x = inputRows(7);
  float total;
  ranks.expectOk(forward(7, y, total));
  auto results = forward(7, y, total, [&](int32_t rank, shardrt_tensor &input, auto &) {
    static const int64_t in[] = {7, depth};
    if (rank == 3)
      input = view<const float>(x, in);
  });
  expectEach(results, SHARDRT_MISMATCH,
             {"input 0, output 0, output 1 on ranks 0, 1 and 2, output 0, output 1 on rank 3"});
}

TEST_P(RootRun, ShapesAreAskedOnRankZeroOrWithExtents) {
  shardrt_tensor input = nothing();
  shardrt_shape shapes[2];
  shardrt_error *error = nullptr;
  shardrt_model *model = ranks.models[1]->get();
  EXPECT_EQ(shardrt_output_shapes(model, "forward", &input, 1, shapes, nullptr, 2, &error),
            SHARDRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(shardrt_error_message(error)).find("input x: only rank 0 has it"),
            std::string::npos)
      << shardrt_error_message(error);
  shardrt_error_free(error);
  int64_t in[] = {7, depth};
  input = view<const float>({}, in, SHARDRT_ROOT);
  shardrt::check(shardrt_output_shapes, model, "forward",
                 static_cast<const shardrt_tensor *>(&input), size_t(1), &shapes[0],
                 static_cast<shardrt_shape *>(nullptr), size_t(2));
  EXPECT_EQ(shapes[0].extents[0], 7);
}
