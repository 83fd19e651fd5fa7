// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tool shard-run and the examples, on the hand-written artifact.
#include "support/archive/TensorStore.h"
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/Process.h"

#include <cstring>

using namespace test;

namespace {

class ShardRun : public ::testing::Test {
protected:
  Folder folder;
  std::string weightsFile = folder.file("w.safetensors");
  ShardRun() { writeSafetensors(weightsFile, parameterFile()); }

  Finished run(const std::string &arguments, const std::string &environment = "",
               const std::string &artifact = HAND_ARTIFACT) {
    return runCommand(folder, "cd '" + folder.path.string() + "'; " + environment +
                                  " '" SHARD_RUN "' '" + artifact + "' --weights '" + weightsFile +
                                  "' " + arguments);
  }
  /// A .npy file of f32 in C or Fortran order.
  void writeNpy(const std::string &name, const std::vector<float> &values, int64_t rows,
                bool fortran = false, const char *type = "<f4") {
    std::string header = std::string("{'descr': '") + type +
                         "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" +
                         std::to_string(rows) + ", 6), }";
    header.resize((header.size() + 10 + 64) / 64 * 64 - 11, ' ');
    header += '\n';
    std::ofstream file(folder.file(name), std::ios::binary);
    file << "\x93NUMPY" << '\x01' << '\0' << char(header.size() & 255) << char(header.size() >> 8)
         << header;
    for (int64_t i = 0; i < rows * depth; ++i) {
      float value = fortran ? values[size_t(i % rows * depth + i / rows)] : values[size_t(i)];
      file.write(reinterpret_cast<const char *>(&value), 4);
    }
  }
  /// Compares the rows [begin, end) of y in a file.
  void expectRows(const std::string &name, int64_t rows, int64_t begin, int64_t end) {
    std::string error;
    auto store = shardc::TensorStore::open(folder.file(name), error);
    ASSERT_TRUE(store) << error;
    const shardc::StoredTensor *y = store->find("y");
    ASSERT_TRUE(y && store->find("total") && store->tensors().size() == 2);
    ASSERT_EQ(y->sizes, (std::vector<int64_t>{end - begin, columns}));
    std::vector<double> wanted = expectedRows(rows);
    for (int64_t i = 0; i < (end - begin) * columns; ++i) {
      float value;
      std::memcpy(&value, y->storage.data() + i * 4, 4);
      ASSERT_NEAR(value, wanted[size_t(begin * columns + i)], 1e-4) << i;
    }
  }
};

void expectContains(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

} // namespace

TEST_F(ShardRun, SafetensorsInAndOut) {
  writeSafetensors(folder.file("in"), {{"x", stored<float>("F32", {7, depth}, inputRows(7))}});
  Finished done = run("-n 4 --inputs in --outputs out --steps 3 --progress");
  EXPECT_EQ(done.status, 0) << done.err;
  expectContains(done.out, {"forward: 4 ranks, 3 steps, median"});
  expectContains(done.err, {"loading hand on 4 ranks", "step 3 of 3", "wrote out"});
  expectRows("out", 7, 0, 7);
}

TEST_F(ShardRun, CheckOfMemoryPassesAndChangesNoResult) {
  writeNpy("x.npy", inputRows(7), 7);
  for (const char *more : {"", " --local"}) {
    std::string local = more;
    if (!local.empty())
      for (int rank = 0; rank < world; ++rank)
        writeNpy("in." + std::to_string(rank) + ".npy", inputRows(7), rank < 2 ? 4 : 3);
    Finished done = run(local.empty() ? "--check --steps 3 --inputs x.npy --outputs out"
                                      : "--check --local --inputs in.%r.npy --outputs out.%r");
    EXPECT_EQ(done.status, 0) << done.err;
    expectContains(done.out, {"memory: whatever the program read or returned had been written"});
  }
  expectRows("out", 7, 0, 7);
}

TEST_F(ShardRun, CheckOfMemoryNamesWhatAnArtifactForgets) {
  writeNpy("x.npy", inputRows(7), 7);
  Finished done = run("--inputs x.npy", "", FORGETFUL_ARTIFACT);
  EXPECT_EQ(done.status, 0) << "nothing else notices: " << done.err;
  done = run("--check --inputs x.npy", "", FORGETFUL_ARTIFACT);
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"the program reads or returns memory that it has not written:",
                            "sum at total (model.py:8) computed results from memory that nothing "
                            "had written"});
  // What follows from it is not blamed.
  std::string message = done.err.substr(done.err.find("shard-run: error:"));
  EXPECT_EQ(message.find("all_reduce"), std::string::npos) << message;
  EXPECT_EQ(message.find("output total"), std::string::npos) << message;
  writeSafetensors(folder.file("ids"), {{"ids", stored<int64_t>("I64", {4}, {1, 2, 3, 4})}});
  done = run("--check --entry lookup --inputs ids", "", FORGETFUL_ARTIFACT);
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"output sum was returned with 1 of 1 elements unwritten"});
}

TEST_F(ShardRun, NumpyInBothOrdersByPositionAndByName) {
  writeNpy("c.npy", inputRows(5), 5);
  writeNpy("f.npy", inputRows(5), 5, true);
  for (const char *input : {"c.npy", "f.npy", "x=c.npy"}) {
    Finished done = run(std::string("--inputs ") + input + " --outputs=out");
    EXPECT_EQ(done.status, 0) << done.err;
    expectRows("out", 5, 0, 5);
  }
}

TEST_F(ShardRun, LocalFilesOfEachRank) {
  // Rows 0 to 3 on dp 0 (ranks 0, 1), rows 4 to 6 on dp 1.
  std::vector<float> x = inputRows(7);
  for (int rank = 0; rank < world; ++rank) {
    int64_t begin = rank < 2 ? 0 : 4, end = rank < 2 ? 4 : 7;
    std::vector<float> mine(x.begin() + begin * depth, x.begin() + end * depth);
    writeNpy("in." + std::to_string(rank) + ".npy", mine, end - begin);
  }
  Finished done = run("--local --inputs in.%r.npy --outputs out.%r");
  EXPECT_EQ(done.status, 0) << done.err;
  expectRows("out.1", 7, 0, 4);
  expectRows("out.2", 7, 4, 7);
}

TEST_F(ShardRun, JsonSummaryTraceAndProfile) {
  writeNpy("x.npy", inputRows(4), 4);
  Finished done = run("--inputs x.npy --steps 4 --format json --trace t.json");
  EXPECT_EQ(done.status, 0) << done.err;
  expectContains(done.out, {"\"ranks\": 4", "\"steps\": 4", "\"median\": ", "\"arena_bytes\": ",
                            "\"per_step_and_rank_ms\": {\"compute\": ",
                            "{\"name\": \"y\", \"type\": \"f32\", \"shape\": [4, 9]}"});
  expectContains(contents(folder.file("t.json")),
                 {"\"rank 3\"", "\"communication\"", "all_gather.0"});
  done = run("--inputs x.npy --steps 2 --profile");
  expectContains(done.out, {"module", "fc", "linear", "all_reduce.1  total (model.py:8)"});
}

TEST_F(ShardRun, EmulatedLinkMakesStepsLonger) {
  writeNpy("x.npy", inputRows(4), 4);
  Finished done = run("--inputs x.npy --profile", "SHARDRT_LINK=20000,1");
  EXPECT_EQ(done.status, 0) << done.err;
  double ms = 0;
  std::sscanf(done.out.c_str(), "forward: 4 ranks, 1 step, median %lf", &ms);
  EXPECT_GE(ms, 40) << "two collectives of 20 ms: " << done.out;
  EXPECT_EQ(run("--inputs x.npy", "SHARDRT_LINK=fast").status, 1);
}

TEST_F(ShardRun, MistakesAreErrorsOnStandardError) {
  writeNpy("x.npy", inputRows(4), 4);
  writeNpy("wide.npy", inputRows(4), 4, false, "<f8");
  std::ofstream(folder.file("cut.npy")) << contents(folder.file("x.npy")).substr(0, 140);
  std::ofstream(folder.file("bad.npy")) << "nothing";
  struct {
    const char *arguments, *message;
  } cases[] = {
      {"", "no file for these inputs of forward: x"},
      {"--inputs x.npy x.npy", "more files than inputs"},
      {"--inputs z=x.npy", "forward has no input z; its inputs are x"},
      {"--inputs x=x.npy x=x.npy", "given twice"},
      {"--inputs missing.npy", "missing.npy"},
      {"--inputs cut.npy", "truncated"},
      {"--inputs bad.npy", "not a .npy file"},
      {"--inputs wide.npy", "truncated"},
      {"-n 3 --inputs x.npy", "compiled for a world of 4 ranks"},
      {"-n 0 --inputs x.npy", "at least 1"},
      {"--entry nothing --inputs x.npy", "no entry nothing; its entries are forward, columns"},
      {"--inputs x.npy --weights missing", "missing"},
      {"--inputs x.npy --timeout soon", "positive number of seconds"},
      {"--inputs x.npy --bogus", "unknown option --bogus"},
      {"--inputs x.npy --local", "must contain %r"},
      {"--inputs x.npy --outputs no/such/folder/out", "cannot write"},
      {"--inputs x.npy --trace no/such/folder/t", "cannot create the trace"},
  };
  for (auto &c : cases) {
    Finished done = run(c.arguments);
    EXPECT_EQ(done.status, 1) << c.arguments;
    EXPECT_NE(done.err.find(c.message), std::string::npos) << c.arguments << ": " << done.err;
    EXPECT_EQ(done.err.rfind("shard-run: error: ", 0), 0u) << done.err;
  }
  EXPECT_NE(run("--inputs x.npy", "WORLD_SIZE=2 RANK=0").err.find("MASTER_ADDR is not set"),
            std::string::npos);
}

TEST_F(ShardRun, MistakesAreReportedTogether) {
  writeNpy("x.npy", inputRows(4), 4);
  Finished done = runCommand(folder, "cd '" + folder.path.string() +
                                         "'; '" SHARD_RUN "' '" HAND_ARTIFACT "' --inputs z=x.npy");
  EXPECT_EQ(done.status, 1);
  // w and the counter; the bias is in the artifact.
  expectContains(done.err, {"forward has no input z", "no file for these inputs of forward: x",
                            "no --weights for 2 parameters"});
  done = run("--inputs z=x.npy --weights nowhere -n 3 --entry columns");
  expectContains(done.err, {"compiled for a world of 4 ranks", "not 3",
                            "nowhere: ", "columns has no input z"});
  done = run("--inputs x.npy --entry none -n 5 --weights nowhere");
  expectContains(done.err, {"no entry none; its entries are forward, columns", "not 5", "nowhere"});
  // Before any file is looked at.
  done =
      run("--steps -3 --threads x --timeout nope --format xml --bogus --local --inputs x.npy -n");
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"--steps needs a whole number of at least 1, not '-3'",
                            "--threads needs a whole number of at least 1, not 'x'",
                            "--timeout needs a positive number of seconds, not 'nope'",
                            "--format must be text or json, not 'xml'", "unknown option --bogus",
                            "the path x.npy must contain %r", "-n needs a value"});
  EXPECT_EQ(done.err.find("of at least 1, not ''"), std::string::npos) << done.err;
}

TEST_F(ShardRun, OptionsAfterAnUnknownOneAreNoProgram) {
  EXPECT_EQ(run("--bogus 3").err,
            "shard-run: error: unknown option --bogus (see shard-run --help)\n");
}

TEST_F(ShardRun, AProgramErrorIsTheOneThatIsShown) {
  writeSafetensors(folder.file("ids"), {{"ids", stored<int64_t>("I64", {4}, {1, 2, 3, -1})}});
  Finished done = run("--entry lookup --inputs ids --outputs out");
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"error: embeddings (model.py:3): index -1 is out of range"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("out"))) << "no outputs of a failed run";
}

TEST_F(ShardRun, SignalsEndAllRanks) {
  writeSafetensors(folder.file("who"), {{"rank", stored<int64_t>("I64", {1}, {sleeper(0, 2500)})}});
  for (int signal : {SIGINT, SIGTERM}) {
    Process process(folder, {SHARD_RUN, HAND_ARTIFACT, "--weights", weightsFile, "--entry", "slow",
                             "--inputs", folder.file("who"), "--steps", "1000", "--progress"});
    process.waitFor("step 1 of 1000");
    kill(process.pid, signal);
    Finished done = process.wait(); // not by a thousand steps
    EXPECT_EQ(done.status, 128 + signal) << done.err;
    EXPECT_EQ(done.err.find("step 20 of 1000"), std::string::npos) << done.err;
  }
}

TEST_F(ShardRun, Examples) {
  // Inputs of ones: y is the column sums of w plus the bias.
  std::vector<float> w = weights();
  double first = 0;
  for (int64_t k = 0; k < depth; ++k)
    first += double(w[size_t(k * columns)]);
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "output 0: 36 elements of f32: %g ", first);
  Finished c =
      runCommand(folder, "ROWS=4 COLUMNS=6 OUTPUTS=2 '" EXAMPLE_C "' '" HAND_ARTIFACT "' '" +
                             weightsFile + "'");
  EXPECT_EQ(c.status, 0) << c.err;
  expectContains(c.out, {wanted, "output 1: 1 elements of f32"});
  c = runCommand(folder,
                 "COLUMNS=5 OUTPUTS=2 '" EXAMPLE_C "' '" HAND_ARTIFACT "' '" + weightsFile + "'");
  EXPECT_EQ(c.status, 1);
  expectContains(c.err, {"dim 1 of input x is 5, expected 6"});

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "Python cannot load a library that needs a sanitizer's runtime";
#endif
  if (!std::filesystem::exists(PYTHON))
    GTEST_SKIP() << "no Python environment with numpy";
  writeNpy("ones.npy", std::vector<float>(24, 1.0f), 4);
  Finished python = runCommand(folder, "SHARDRT='" SHARDRT_LIBRARY "' '" PYTHON "' '" EXAMPLE_PYTHON
                                       "' '" HAND_ARTIFACT "' '" +
                                           weightsFile + "' x='" + folder.file("ones.npy") + "'");
  EXPECT_EQ(python.status, 0) << python.err;
  std::snprintf(wanted, sizeof wanted, "[[%g", first);
  expectContains(python.out, {"y (4, 9) float32", wanted, "total () float32"});
}
