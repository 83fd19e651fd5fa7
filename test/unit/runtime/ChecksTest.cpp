// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the C ABI refuses, and how it says so.
#include "runtime/abi/shardrt_program.h"
#include "test/unit/runtime/Artifact.h"

using namespace test;
using shardrt::view;

namespace {

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

class Checks : public ::testing::Test {
protected:
  Folder folder;
  Ranks ranks;

  Ranks::Result createChanged(const std::string &from, const std::string &to) {
    ChangedManifest changed(ranks.artifact.manifest(), from, to);
    return outcome([&] { shardrt::Model(&changed.manifest, ranks.config(0)); });
  }
  Ranks::Result loadFile(const std::map<std::string, Stored> &tensors) {
    writeSafetensors(folder.file("w"), tensors);
    return outcome([&] { ranks.models[0]->loadParameters(folder.file("w")); });
  }
  /// Runs forward on all ranks with this input on rank 0 and a good one on the others.
  std::vector<Ranks::Result> forward(const shardrt_tensor &onRankZero, int64_t rows = 4) {
    std::vector<float> x = inputRows(rows);
    return ranks.each([&](int32_t rank, shardrt::Model &model) {
      std::vector<float> y(size_t(rows * columns)), total(1);
      int64_t in[] = {rows, depth}, out[] = {rows, columns};
      shardrt_tensor input = rank == 0 ? onRankZero : view<const float>(x, in);
      shardrt_tensor outputs[] = {view<float>(y, out), view<float>(total, {})};
      model.run("forward", {&input, 1}, outputs);
    });
  }
  void ready() {
    ranks.create();
    writeSafetensors(folder.file("good"), parameterFile());
    ranks.load(folder.file("good"));
  }
};

} // namespace

TEST_F(Checks, Create) {
  expectError(createChanged("\"world_size\": 4", "\"world_size\": 3"), SHARDRT_BAD_FILE,
              {"3 ranks are too few for a mesh of 4"});
  expectError(createChanged("\"features\": []", "\"features\": [\"avx9\", \"amx-turbo\"]"),
              SHARDRT_INCOMPATIBLE, {"generic", "lacks avx9, amx-turbo"});
  expectError(createChanged("-linux-gnu", "-other"), SHARDRT_OK, {});
  expectError(createChanged("\"triple\": \"", "\"triple\": \"sparc"), SHARDRT_INCOMPATIBLE,
              {"compiled for sparc"});
  expectError(createChanged("\"kind\": \"cpu\"", "\"kind\": \"tpu\""), SHARDRT_INCOMPATIBLE,
              {"target is tpu"});
  expectError(createChanged("\"format\": 1", "\"format\": 9"), SHARDRT_INCOMPATIBLE, {"format 9"});
  expectError(createChanged("\"name\": \"slow\"", "\"name\": \"fast\""), SHARDRT_BAD_FILE,
              {"entry fast", "slow"});
  expectError(createChanged("\"names\": [\"bias\"]", "\"names\": [\"bios\"]"), SHARDRT_BAD_FILE,
              {"constant bios is not in the artifact"});
  shardrt_manifest old = *ranks.artifact.manifest();
  old.program_abi = 999;
  expectError(outcome([&] { shardrt::Model(&old, ranks.config(0)); }), SHARDRT_INCOMPATIBLE,
              {"program ABI 999", "compile the model again"});
}

TEST_F(Checks, PredictionsOfAProgram) {
  shardrt_manifest manifest = *ranks.artifact.manifest();
  shardrt_program program = *manifest.program;
  std::vector<shardrt_entry> entries(program.entries, program.entries + program.n_entries);
  std::vector<shardrt_span> spans(entries[0].predicted,
                                  entries[0].predicted + entries[0].n_predicted);
  manifest.program = &program;
  program.entries = entries.data();
  auto create = [&] { return outcome([&] { shardrt::Model(&manifest, ranks.config(0)); }); };
  entries[0].predicted = nullptr;
  expectError(create(), SHARDRT_BAD_FILE, {"entry forward", "its prediction is missing"});
  entries[0].predicted = spans.data();
  expectError(create(), SHARDRT_OK, {});
  spans[1].stream = 3;
  expectError(create(), SHARDRT_BAD_FILE, {"piece 1 of its prediction is malformed"});
  spans[1] = entries[0].predicted[0];
  spans[2].name = nullptr;
  expectError(create(), SHARDRT_BAD_FILE, {"piece 2 of its prediction is malformed"});
}

TEST_F(Checks, WorldSize) {
  auto pair = shardrt::localCommunicators(2);
  shardrt_config config = ranks.config(1);
  config.world_size = 2;
  config.communicator = pair[1].get();
  expectError(outcome([&] { shardrt::Model(ranks.artifact.manifest(), config); }),
              SHARDRT_INVALID_ARGUMENT, {"a world of 4 ranks", "\"dp\" = 2", "not 2"});
}

TEST_F(Checks, Configuration) {
  auto with = [&](auto change) {
    shardrt_config config = ranks.config(1);
    change(config);
    return outcome([&] { shardrt::Model(ranks.artifact.manifest(), config); });
  };
  expectError(with([](auto &c) { c.communicator = nullptr; }), SHARDRT_INVALID_ARGUMENT,
              {"needs a communicator"});
  expectError(with([](auto &c) { c.rank = 4; }), SHARDRT_INVALID_ARGUMENT, {"rank is 4"});
  expectError(with([](auto &c) { c.rank = 2; }), SHARDRT_INVALID_ARGUMENT,
              {"the communicator is rank 1 of 4"});
  expectError(with([](auto &c) { c.timeout_s = -1, c.threads = -1; }), SHARDRT_INVALID_ARGUMENT,
              {"timeout_s", "threads"});
  expectError(with([](auto &c) { c.struct_bytes = 3; }), SHARDRT_INVALID_ARGUMENT,
              {"shardrt_config_init"});
  shardrt::Model first(ranks.artifact.manifest(), ranks.config(1));
  expectError(with([](auto &) {}), SHARDRT_INVALID_ARGUMENT, {"bound to another model"});
}

TEST_F(Checks, Artifacts) {
  expectError(outcome([] { shardrt::Artifact("no-such-file.so"); }), SHARDRT_BAD_FILE,
              {"no-such-file.so"});
  std::ofstream(folder.file("text.so")) << "not an object";
  expectError(outcome([&] { shardrt::Artifact(folder.file("text.so")); }), SHARDRT_BAD_FILE,
              {"text.so"});
  shardrt_error *error = nullptr;
  EXPECT_EQ(shardrt_open(nullptr, nullptr, &error), SHARDRT_INVALID_ARGUMENT);
  shardrt_error_free(error);
  EXPECT_EQ(shardrt_open(nullptr, nullptr, nullptr), SHARDRT_INVALID_ARGUMENT);
}

TEST_F(Checks, AllProblemsOfAParameterFileAtOnce) {
  ranks.create();
  auto bad = parameterFile();
  bad["fc.weight"].shape = {columns, depth};
  bad["calls"] = stored<int32_t>("I32", {}, {1});
  bad["surplus"] = stored<float>("F32", {2}, {1, 2});
  bad["unused.mask"] = stored<float>("F32", {1}, {1});
  expectError(loadFile(bad), SHARDRT_INVALID_ARGUMENT,
              {"fc.weight: it is f32[9, 6], expected f32[6, 9]",
               "calls: it is i32[], expected i64[]", "surplus: the program has no such parameter"});
  EXPECT_EQ(loadFile(bad).message.find("unused.mask"), std::string::npos);
  auto misspelt = parameterFile();
  misspelt["fc.wieght"] = misspelt["fc.weight"];
  misspelt.erase("fc.weight");
  expectError(loadFile(misspelt), SHARDRT_INVALID_ARGUMENT,
              {"fc.weight: missing, expected f32[6, 9]; the file has fc.wieght",
               "fc.wieght: the program has no such parameter (f32[6, 9]); it lacks fc.weight"});
  expectError(loadFile({}), SHARDRT_INVALID_ARGUMENT,
              {"fc.weight: missing, expected f32[6, 9]", "calls: missing"});
  std::ofstream(folder.file("w")) << "garbage";
  expectError(outcome([&] { ranks.models[0]->loadParameters(folder.file("w")); }), SHARDRT_BAD_FILE,
              {folder.file("w").c_str()});
}

TEST_F(Checks, TiedNames) {
  ranks.create();
  auto file = parameterFile();
  file["fc.tied"] = file["fc.weight"];
  EXPECT_EQ(loadFile(file).status, SHARDRT_OK) << "both names, equal";
  file["fc.tied"].bytes[3] ^= 1; // in column 0, which rank 0 has
  expectError(loadFile(file), SHARDRT_INVALID_ARGUMENT, {"fc.tied: it is tied to fc.weight"});
  file.erase("fc.weight");
  EXPECT_EQ(loadFile(file).status, SHARDRT_OK) << "the other name alone";
}

TEST_F(Checks, AFailedLoadKeepsTheOldParameters) {
  ready();
  std::vector<Ranks::Result> results = ranks.each(
      [&](int32_t, shardrt::Model &model) { model.loadParameters(folder.file("nothing")); });
  for (auto &result : results)
    EXPECT_EQ(result.status, SHARDRT_BAD_FILE);
  int64_t in[] = {4, depth};
  std::vector<float> x = inputRows(4);
  ranks.expectOk(forward(view<const float>(x, in)));
}

TEST_F(Checks, ParametersFromACallback) {
  ranks.create();
  std::vector<float> w = weights();
  int64_t calls = 0, extents[] = {depth, columns};
  shardrt_tensor tensors[] = {view<const float>(w, extents),
                              view<const int64_t>(std::span<const int64_t>(&calls, 1), {})};
  auto find = [](void *context, const char *name, shardrt_tensor *tensor) -> int32_t {
    // The second of the tied names, so that the first is asked for and missed.
    auto *tensors = static_cast<shardrt_tensor *>(context);
    std::string wanted = name;
    if (wanted == "fc.tied" || wanted == "calls")
      *tensor = tensors[wanted == "calls"];
    else
      return 1;
    return 0;
  };
  for (auto &model : ranks.models)
    shardrt::check(shardrt_load_parameters, model->get(), +find, static_cast<void *>(tensors));
  w.assign(w.size(), 0); // they were copied
  int64_t in[] = {4, depth};
  std::vector<float> x = inputRows(4);
  ranks.expectOk(forward(view<const float>(x, in)));
  auto none = [](void *, const char *, shardrt_tensor *) -> int32_t { return 1; };
  expectError(outcome([&] {
                shardrt::check(shardrt_load_parameters, ranks.models[0]->get(), +none,
                               static_cast<void *>(nullptr));
              }),
              SHARDRT_INVALID_ARGUMENT, {"fc.weight: missing"});
  auto broken = [](void *, const char *, shardrt_tensor *) -> int32_t { return 7; };
  expectError(outcome([&] {
                shardrt::check(shardrt_load_parameters, ranks.models[0]->get(), +broken,
                               static_cast<void *>(nullptr));
              }),
              SHARDRT_INVALID_ARGUMENT, {"returned 7"});
}

TEST_F(Checks, BadInputOfOneRankEndsTheOthersAtOnce) {
  ready();
  std::vector<double> x(4 * depth);
  int64_t in[] = {4, depth};
  std::vector<Ranks::Result> results = forward(view<const double>(x, in));
  expectError(results[0], SHARDRT_INVALID_ARGUMENT,
              {"input x: it is f64[4, 6], expected element type f32"});
  for (int32_t r = 1; r < world; ++r)
    expectError(results[size_t(r)], SHARDRT_ABORTED, {"rank 0 did not start this run", "input x"});
}

TEST_F(Checks, BadInputOfAllRanksLeavesThemUsable) {
  ready();
  struct Bad {
    int64_t rows, columns;
    const char *message;
  };
  for (const Bad &bad :
       {Bad{4, 5, "dim 1 of input x is 5, expected 6"},
        Bad{65, 6, "s0 = 65 is outside its range 1 to 64"},
        Bad{13, 6, "the program needs s0 != 13"}, Bad{0, 6, "outside its range"}}) {
    std::vector<float> x(size_t(bad.rows * bad.columns));
    std::vector<Ranks::Result> results = ranks.each([&](int32_t, shardrt::Model &model) {
      int64_t in[] = {bad.rows, bad.columns};
      shardrt_tensor input = view<const float>(x, in);
      model.run("forward", {&input, 1}, {});
    });
    for (auto &result : results)
      expectError(result, SHARDRT_INVALID_ARGUMENT, {bad.message});
  }
  int64_t in[] = {4, depth};
  std::vector<float> x = inputRows(4);
  ranks.expectOk(forward(view<const float>(x, in)));
}

TEST_F(Checks, CallsThatCannotBe) {
  ranks.create();
  shardrt::Model &model = *ranks.models[0];
  std::vector<float> x = inputRows(4), y(36), total(1);
  int64_t in[] = {4, depth}, out[] = {4, columns}, wrong[] = {4, 8};
  shardrt_tensor input = view<const float>(x, in);
  std::vector<shardrt_tensor> outputs = {view<float>(y, out), view<float>(total, {})};
  auto run = [&](const char *entry, std::vector<shardrt_tensor> in) {
    return outcome([&] { model.run(entry, in, outputs); });
  };
  expectError(run("forward", {input}), SHARDRT_INVALID_ARGUMENT,
              {"parameters have not been loaded, the first is "});
  EXPECT_EQ(loadFile(parameterFile()).status, SHARDRT_OK);
  expectError(run("backward", {input}), SHARDRT_NOT_FOUND,
              {"no entry backward", "forward, columns, lookup, slow"});
  expectError(run("forward", {}), SHARDRT_INVALID_ARGUMENT, {"0 given, expected 1 (x)"});
  shardrt_tensor null = input;
  null.data = nullptr;
  expectError(run("forward", {null}), SHARDRT_INVALID_ARGUMENT, {"data is null"});
  shardrt_tensor local = input;
  local.scope = SHARDRT_LOCAL;
  expectError(run("forward", {local}), SHARDRT_INVALID_ARGUMENT, {"must come with global_extents"});
  local.global_extents = in;
  expectError(run("forward", {local}), SHARDRT_INVALID_ARGUMENT,
              {"f32[4, 6], this rank's shard of f32[s0, 6] is f32[2, 6]"});
  outputs[0].extents = wrong;
  outputs[1].type = SHARDRT_F64;
  expectError(run("forward", {input}), SHARDRT_INVALID_ARGUMENT,
              {"output y: it is f32[4, 8], expected f32[4, 9]", "output total", "f64"});
  outputs.pop_back();
  expectError(run("forward", {input}), SHARDRT_INVALID_ARGUMENT, {"1 given, expected 2"});
}

TEST_F(Checks, AProgramErrorEndsAllRanks) {
  // Returned at once; recorded by a kernel before a collective, and before one that is started.
  const std::vector<std::vector<int64_t>> failing = {
      {1, 2, 3, -2}, {1, 2, -1, 3}, {1, 2, 3, -1}, {1, 2, -1, -1}};
  for (const std::vector<int64_t> &ids : failing) {
    Ranks fresh;
    fresh.create();
    writeSafetensors(folder.file("good"), parameterFile());
    fresh.load(folder.file("good"));
    std::string index = ids[3] == -2 ? "index -2 is out of range" : "index -1 is out of range";
    auto results = fresh.each([&](int32_t, shardrt::Model &model) {
      int64_t extents[] = {4};
      float sum = 0;
      shardrt_tensor input = view<const int64_t>(std::span<const int64_t>(ids), extents);
      shardrt_tensor output = view<float>({&sum, 1}, {}, SHARDRT_LOCAL);
      model.run("lookup", {&input, 1}, {&output, 1});
    });
    for (int32_t r : {0, 1}) // dp 0 has ids 1, 2, and must get nothing that was made of a bad one
      expectError(results[size_t(r)], SHARDRT_ABORTED, {index.c_str()});
    for (int32_t r : {2, 3})
      expectError(results[size_t(r)], SHARDRT_PROGRAM_ERROR,
                  {"embeddings (model.py:3)", index.c_str()});
  }
}

TEST_F(Checks, AStuckRankTimesOutWithANamedPlace) {
  std::string log;
  ranks.create([&](shardrt_config &config) {
    config.timeout_s = 2;
    if (config.rank != 1)
      return;
    config.log_context = &log;
    config.log = [](void *context, int32_t, int32_t, const char *message) {
      *static_cast<std::string *>(context) += message;
    };
  });
  writeSafetensors(folder.file("good"), parameterFile());
  ranks.load(folder.file("good"));
  auto results = ranks.each([&](int32_t, shardrt::Model &model) {
    int64_t stuck = sleeper(3, 6000), extents[] = {1};
    float count = 0;
    shardrt_tensor input = view<const int64_t>(std::span<const int64_t>(&stuck, 1), extents);
    shardrt_tensor output = view<float>({&count, 1}, {}, SHARDRT_LOCAL);
    model.run("slow", {&input, 1}, {&output, 1});
  });
  // Rank 1 is in rank 3's group; the other group finishes.
  expectError(results[1], SHARDRT_TIMEOUT,
              {"all_reduce.1 (total (model.py:8))", "missing rank 3", "last seen in linear"});
  expectError(results[3], SHARDRT_TIMEOUT, {"all_reduce.1"});
  EXPECT_NE(log.find("last collectives of rank 1"), std::string::npos) << log;
  EXPECT_NE(log.find("all_reduce.1 (total (model.py:8))"), std::string::npos) << log;
}

TEST_F(Checks, RanksWithDifferentArtifactsDoNotStart) {
  struct Change {
    const char *from, *to, *message;
  };
  for (const Change &change :
       {Change{"\"sequence_hash\": \"q1\"", "\"sequence_hash\": \"q2\"",
               "collective sequence hash: q1 on ranks 0, 2 and 3, q2 on rank 1"},
        Change{"\"artifact_hash\": \"h1\"", "\"artifact_hash\": \"h0\"",
               "artifact hash: h0 on rank 1, h1 on ranks 0, 2 and 3"},
        Change{"\"name\": \"dp\"", "\"name\": \"pp\"", "mesh: "}}) {
    Ranks fresh;
    ChangedManifest other(fresh.artifact.manifest(), change.from, change.to);
    for (int32_t r = 0; r < world; ++r)
      fresh.models.push_back(std::make_unique<shardrt::Model>(
          r == 1 ? &other.manifest : fresh.artifact.manifest(), fresh.config(r)));
    writeSafetensors(folder.file("good"), parameterFile());
    fresh.load(folder.file("good"));
    std::vector<float> x = inputRows(4);
    auto results = fresh.each([&](int32_t, shardrt::Model &model) {
      int64_t in[] = {4, depth}, out[] = {4, columns};
      std::vector<float> y(4 * columns), total(1);
      shardrt_tensor input = view<const float>(x, in);
      shardrt_tensor outputs[] = {view<float>(y, out), view<float>(total, {})};
      model.run("forward", {&input, 1}, outputs);
    });
    for (auto &result : results)
      expectError(result, SHARDRT_MISMATCH, {change.message});
    fresh.models.clear(); // before the manifest of one
  }
}
