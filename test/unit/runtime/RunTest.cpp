// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running an artifact through the C ABI: scopes, strides, dynamic sizes, states, packed parameters.
#include "test/unit/runtime/Artifact.h"

using namespace test;
using shardrt::view;

namespace {

class Run : public ::testing::Test {
protected:
  Folder folder;
  Ranks ranks;
  Run() {
    writeSafetensors(folder.file("w.safetensors"), parameterFile());
    ranks.create();
    ranks.load(folder.file("w.safetensors"));
  }
  /// y and total of forward, with this scope for the outputs.
  void forward(int64_t rows, int32_t scope) {
    std::vector<float> x = inputRows(rows);
    std::vector<double> wanted = expectedRows(rows);
    double wantedTotal = 0;
    for (double value : wanted)
      wantedTotal += value;
    std::vector<std::vector<float>> y(world, std::vector<float>(wanted.size(), -99));
    std::vector<float> totals(world, -99);
    ranks.expectOk(ranks.each([&](int32_t rank, shardrt::Model &model) {
      int64_t in[] = {rows, depth}, out[] = {rows, columns};
      bool shared = scope == SHARDRT_SHARED;
      size_t mine = shared ? 0 : size_t(rank);
      shardrt_tensor input = view<const float>(x, in);
      shardrt_tensor outputs[] = {view<float>(y[mine], out, scope),
                                  view<float>({&totals[mine], 1}, {}, scope)};
      model.run("forward", {&input, 1}, outputs);
    }));
    for (size_t r = 0; r < (scope == SHARDRT_SHARED ? 1u : size_t(world)); ++r) {
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(y[r][i], wanted[i], 1e-4) << "rank " << r << ", element " << i;
      EXPECT_NEAR(totals[r], wantedTotal, 1e-3) << "rank " << r;
    }
  }
};

} // namespace

TEST_F(Run, GlobalOutputsOnEveryRank) { forward(8, SHARDRT_GLOBAL); }
TEST_F(Run, SharedOutputs) { forward(8, SHARDRT_SHARED); }
TEST_F(Run, SizesThatDoNotDivideAndEmptyShards) {
  for (int64_t rows : {7, 1, 64, 3, 7})
    forward(rows, SHARDRT_SHARED);
}

TEST_F(Run, LocalInputsAndOutputs) {
  constexpr int64_t rows = 7; // 4 on dp 0, 3 on dp 1
  std::vector<float> x = inputRows(rows);
  std::vector<double> wanted = expectedRows(rows);
  ranks.expectOk(ranks.each([&](int32_t rank, shardrt::Model &model) {
    int64_t begin = rank / 2 * 4, mine = rank / 2 == 0 ? 4 : 3;
    int64_t global[] = {rows, depth}, in[] = {mine, depth}, out[] = {mine, columns};
    shardrt_shape shard;
    shardrt::check(shardrt_input_shard, model.get(), "forward", size_t(0), &global[0], 2, &shard);
    EXPECT_EQ(shard.extents[0], mine);
    std::vector<float> y(size_t(mine * columns)), total(1);
    shardrt_tensor input = view<const float>(
        std::span<const float>(x).subspan(size_t(begin * depth), size_t(mine * depth)), in,
        SHARDRT_LOCAL);
    input.global_extents = global;
    shardrt_tensor outputs[] = {view<float>(y, out, SHARDRT_LOCAL),
                                view<float>(total, {}, SHARDRT_LOCAL)};
    model.run(nullptr, {&input, 1}, outputs);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], wanted[size_t(begin * columns) + i], 1e-4);
  }));
}

TEST_F(Run, StridesOfInputsAndOutputs) {
  constexpr int64_t rows = 5;
  std::vector<float> x = inputRows(rows), transposed(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      transposed[size_t(k * rows + i)] = x[size_t(i * depth + k)];
  std::vector<double> wanted = expectedRows(rows);
  std::vector<float> y(size_t(rows * 20), -99), total(1);
  ranks.expectOk(ranks.each([&](int32_t, shardrt::Model &model) {
    int64_t in[] = {rows, depth}, out[] = {rows, columns}, inStrides[] = {1, rows},
            outStrides[] = {20, 2};
    shardrt_tensor input = view<const float>(transposed, in);
    input.strides = inStrides;
    shardrt_tensor outputs[] = {view<float>(y, out, SHARDRT_SHARED),
                                view<float>(total, {}, SHARDRT_SHARED)};
    outputs[0].strides = outStrides;
    model.run("forward", {&input, 1}, outputs);
  }));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      EXPECT_NEAR(y[size_t(i * 20 + 2 * j)], wanted[size_t(i * columns + j)], 1e-4);
      EXPECT_EQ(y[size_t(i * 20 + 2 * j + 1)], -99) << "between strides nothing is written";
    }
}

TEST_F(Run, OutputsOverInputsAreStaged) {
  // x and y share memory: rows of y are longer, so writing y in place would destroy x.
  constexpr int64_t rows = 4;
  std::vector<std::vector<float>> memory(world, std::vector<float>(rows * columns));
  std::vector<double> wanted = expectedRows(rows);
  std::vector<float> x = inputRows(rows);
  ranks.expectOk(ranks.each([&](int32_t rank, shardrt::Model &model) {
    auto &mine = memory[size_t(rank)];
    std::copy(x.begin(), x.end(), mine.begin());
    int64_t in[] = {rows, depth}, out[] = {rows, columns};
    float total = 0;
    shardrt_tensor input = view<const float>(std::span<const float>(mine).first(x.size()), in);
    shardrt_tensor outputs[] = {view<float>(mine, out, SHARDRT_SHARED),
                                view<float>({&total, 1}, {}, SHARDRT_SHARED)};
    model.run("forward", {&input, 1}, outputs);
    // tp 0 writes what its dp row owns.
    for (int64_t i = rank / 2 * 2; rank % 2 == 0 && i < rank / 2 * 2 + 2; ++i)
      for (int64_t j = 0; j < columns; ++j)
        ASSERT_NEAR(mine[size_t(i * columns + j)], wanted[size_t(i * columns + j)], 1e-4);
  }));
}

TEST_F(Run, OutputShapesBeforeRunning) {
  int64_t in[] = {7, depth};
  shardrt_tensor input = view<const float>({}, in);
  shardrt_shape global[2], local[2];
  for (int32_t r = 0; r < world; ++r) {
    shardrt::check(shardrt_output_shapes, ranks.models[size_t(r)]->get(), "forward",
                   static_cast<const shardrt_tensor *>(&input), size_t(1), &global[0], &local[0],
                   size_t(2));
    EXPECT_EQ(global[0].extents[0], 7);
    EXPECT_EQ(global[0].extents[1], 9);
    EXPECT_EQ(local[0].extents[0], r < 2 ? 4 : 3);
    EXPECT_EQ(global[1].rank, 0);
    EXPECT_EQ(global[0].type, SHARDRT_F32);
  }
}

TEST_F(Run, PackedParametersFollowTheParameters) {
  auto check = [&](float factor) {
    std::vector<float> sums(columns), w = weights();
    ranks.expectOk(ranks.each([&](int32_t, shardrt::Model &model) {
      int64_t out[] = {columns};
      shardrt_tensor output = view<float>(sums, out, SHARDRT_SHARED);
      model.run("columns", {}, {&output, 1});
    }));
    for (int64_t j = 0; j < columns; ++j) {
      double wanted = 0;
      for (int64_t k = 0; k < depth; ++k)
        wanted += double(factor * w[size_t(k * columns + j)]);
      EXPECT_NEAR(sums[size_t(j)], wanted, 1e-5) << j;
    }
  };
  check(1);
  std::vector<float> doubled = weights();
  for (float &value : doubled)
    value *= 2;
  auto file = parameterFile();
  file["fc.weight"] = stored<float>("F32", {depth, columns}, doubled);
  writeSafetensors(folder.file("w2.safetensors"), file);
  ranks.load(folder.file("w2.safetensors"));
  check(2);
}

TEST_F(Run, TraceHasEveryRankAndStream) {
  Ranks traced;
  traced.create([](shardrt_config &c) { c.flags = SHARDRT_RECORD_EVENTS; });
  traced.load(folder.file("w.safetensors"));
  std::vector<float> x = inputRows(4), y(4 * columns), total(1);
  traced.expectOk(traced.each([&](int32_t, shardrt::Model &model) {
    int64_t in[] = {4, depth}, out[] = {4, columns};
    shardrt_tensor input = view<const float>(x, in);
    shardrt_tensor outputs[] = {view<float>(y, out, SHARDRT_SHARED),
                                view<float>(total, {}, SHARDRT_SHARED)};
    model.run("forward", {&input, 1}, outputs);
  }));
  std::vector<const shardrt_model *> models;
  for (auto &model : traced.models) {
    models.push_back(model->get());
    std::map<std::string, int> seen;
    shardrt_visit_events(
        model->get(),
        [](void *context, const shardrt_event *event) {
          ++(*static_cast<std::map<std::string, int> *>(
              context))[std::to_string(event->stream) + event->name];
          EXPECT_GE(event->duration_us, 0);
        },
        &seen);
    std::map<std::string, int> wanted = {{"0linear", 1},       {"0sum", 1},
                                         {"1all_gather.0", 1}, {"1all_reduce.1", 1},
                                         {"2all_gather.0", 1}, {"2all_reduce.1", 1}};
    EXPECT_EQ(seen, wanted);
  }
  std::string path = folder.file("trace.json");
  shardrt::check(shardrt_write_trace, models.data(), models.size(), path.c_str());
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("\"name\":\"rank 3\""), std::string::npos);
  EXPECT_NE(text.find("\"location\":\"fc (model.py:7)\""), std::string::npos);
  // What the artifact expects of a call, in lanes of its own on each rank.
  for (int rank = 0; rank != 4; ++rank)
    for (const char *lane : {"3,\"name\":\"thread_name\",\"args\":{\"name\":\"predicted compute\"",
                             "4,\"name\":\"thread_name\",\"args\":{\"name\":\"predicted communi",
                             "5,\"name\":\"thread_name\",\"args\":{\"name\":\"predicted waiting\""})
      EXPECT_NE(text.find("\"pid\":" + std::to_string(rank) + ",\"tid\":" + lane),
                std::string::npos);
  size_t predictions = 0;
  for (size_t at = 0; (at = text.find("\"cat\":\"predicted\"", at)) != std::string::npos; ++at)
    ++predictions;
  EXPECT_EQ(predictions, 4u * 3);
  EXPECT_NE(text.find(",\"dur\":25.000,\"args\":{\"location\":\"mlp (mlp.py:4)\""),
            std::string::npos);
}
