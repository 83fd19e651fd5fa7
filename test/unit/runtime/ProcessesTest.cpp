// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// shard-run whose ranks are processes, of its own and of launchers.
#include "test/unit/runtime/Artifact.h"
#include "test/unit/runtime/Ports.h"
#include "test/unit/runtime/Process.h"

using namespace test;

namespace {

void expectContains(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}
size_t occurrences(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

class Processes : public ::testing::Test {
protected:
  Folder folder;
  std::string weights = folder.file("w.safetensors");
  Processes() {
    writeSafetensors(weights, parameterFile());
    writeSafetensors(folder.file("in"), {{"x", stored<float>("F32", {7, depth}, inputRows(7))}});
    writeSafetensors(
        folder.file("narrow"),
        {{"x", stored<float>("F32", {7, depth - 1}, std::vector<float>(size_t(7 * (depth - 1))))}});
    // Rank 2 sleeps in the entry `slow`: for the rest of the test, once all have made a step.
    sleep(sleeper(2, 600000, 1));
  }

  void sleep(int64_t how) {
    writeSafetensors(folder.file("rank"), {{"rank", stored<int64_t>("I64", {1}, {how})}});
  }

  /// `launcher` comes in front of shard-run.
  Finished run(const std::string &arguments, const std::string &launcher = "",
               const std::string &artifact = HAND_ARTIFACT) {
    return runCommand(folder, "cd '" + folder.path.string() + "'; " + launcher +
                                  " '" SHARD_RUN "' '" + artifact + "' --weights '" + weights +
                                  "' " + arguments);
  }
  std::string outputOfThreads() {
    Finished done = run("--inputs in --outputs wanted --steps 3");
    EXPECT_EQ(done.status, 0) << done.err;
    return contents(folder.file("wanted"));
  }
  std::vector<std::string> slow(std::vector<std::string> more) {
    std::vector<std::string> words{
        SHARD_RUN,           "--processes", HAND_ARTIFACT, "--weights", weights, "--inputs",
        folder.file("rank"), "--entry",     "slow",        "--steps",   "100",   "--progress"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

} // namespace

TEST_F(Processes, SameAnswersAsThreads) {
  std::string wanted = outputOfThreads();
  Finished done = run("-n 4 --processes --inputs in --outputs out --steps 3 --progress");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(contents(folder.file("out")), wanted);
  expectContains(done.out, {"forward: 4 ranks, 3 steps, median"});
  EXPECT_EQ(occurrences(done.out, "forward:"), 1u);
  expectContains(done.err, {"communicator: local, 4 processes, shared memory",
                            "loading hand on 4 ranks", "step 3 of 3", "wrote out"});
  EXPECT_EQ(occurrences(done.err, "step 3 of 3"), 1u);
}

TEST_F(Processes, AClosedStandardInputDisturbsNobody) {
  std::string wanted = outputOfThreads();
  for (const char *closed : {"<&-", "<&- 3<&- 4<&- 5<&-"}) {
    Finished done = run(std::string("--processes --inputs in --outputs out --steps 3 ") + closed);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(contents(folder.file("out")), wanted);
  }
}

TEST_F(Processes, LocalFilesOfEachRank) {
  std::vector<float> x = inputRows(7);
  for (int rank = 0; rank < world; ++rank) {
    int64_t begin = rank < 2 ? 0 : 4, end = rank < 2 ? 4 : 7;
    std::vector<float> mine(x.begin() + begin * depth, x.begin() + end * depth);
    writeSafetensors(folder.file("in." + std::to_string(rank)),
                     {{"x", stored<float>("F32", {end - begin, depth}, mine)}});
  }
  ASSERT_EQ(run("--local --inputs in.%r --outputs wanted.%r").status, 0);
  Finished done = run("--processes --local --inputs in.%r --outputs out.%r");
  EXPECT_EQ(done.status, 0) << done.err;
  for (const char *rank : {"0", "1", "2", "3"}) {
    EXPECT_NE(contents(folder.file(std::string("out.") + rank)), "") << rank;
    EXPECT_EQ(contents(folder.file(std::string("out.") + rank)),
              contents(folder.file(std::string("wanted.") + rank)))
        << rank;
  }
}

TEST_F(Processes, TraceProfileCheckAndJsonAreOfAllRanks) {
  Finished done = run("--processes --inputs in --steps 4 --format json --trace t.json");
  EXPECT_EQ(done.status, 0) << done.err;
  expectContains(done.out, {"\"ranks\": 4", "\"steps\": 4",
                            "\"median\": ", "\"per_step_and_rank_ms\": {\"compute\": ",
                            "{\"name\": \"y\", \"type\": \"f32\", \"shape\": [7, 9]}"});
  std::string trace = contents(folder.file("t.json"));
  for (const char *rank : {"0", "1", "2", "3"})
    expectContains(trace, {("\"rank " + std::string(rank) + "\"").c_str(),
                           ("\"ph\":\"X\",\"pid\":" + std::string(rank)).c_str()});
  EXPECT_EQ(occurrences(trace, "\"name\":\"all_gather.0\",\"cat\":\"communication\""), 4u * 3);
  EXPECT_EQ(trace.find("\"ts\":-"), std::string::npos) << "times count from the first event";
  std::string wait = run("--processes --inputs in --steps 2 --profile --check").out;
  expectContains(wait, {"memory: whatever the program read", "module", "fc", "linear",
                        "all_reduce.1  total (model.py:8)"});
}

TEST_F(Processes, MistakesAreReportedOnce) {
  std::filesystem::copy_file(weights, folder.file("short"));
  std::filesystem::resize_file(folder.file("short"), 20);
  struct {
    const char *arguments, *message;
  } cases[] = {
      {"", "no file for these inputs of forward: x"},
      {"--inputs nowhere", "nowhere: No such file"},
      {"--inputs narrow", "dim 1 of input x is 5, expected 6"},
      {"--inputs in --weights short", "short"},
      {"--inputs in --entry nothing", "no entry nothing; its entries are forward, columns"},
      {"--inputs in -n 3", "compiled for a world of 4 ranks, not 3"},
      {"--inputs in --outputs no/such/folder/out", "cannot write"},
      {"--inputs in --trace no/such/folder/t", "cannot create the trace"},
      {"--local --inputs in.%r", "in.0: No such file"},
  };
  for (auto &c : cases) {
    Finished done = run(std::string("--processes ") + c.arguments);
    EXPECT_EQ(done.status, 1) << c.arguments;
    EXPECT_NE(done.err.find(c.message), std::string::npos) << c.arguments << ": " << done.err;
    EXPECT_EQ(occurrences(done.err, "shard-run: error: "), 1u) << done.err;
    EXPECT_EQ(done.out, "");
  }
  Finished done = run("--processes --inputs in", "", "/nowhere/model.so");
  expectContains(done.err, {"/nowhere/model.so"});
  done = run("--processes --inputs in", "WORLD_SIZE=2 RANK=0");
  expectContains(done.err, {"started by torchrun", "leave out --processes"});
  done = run("--processes --inputs in", "SHARDRT_COMMUNICATOR=pigeons");
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"SHARDRT_COMMUNICATOR is 'pigeons', expected one of auto, local"});
}

TEST_F(Processes, OnlyOneRankLacksAFile) {
  for (int rank = 0; rank < world - 1; ++rank)
    std::filesystem::copy_file(folder.file("in"), folder.file("in." + std::to_string(rank)));
  Finished done = run("--processes --local --inputs in.%r");
  EXPECT_EQ(done.status, 1);
  expectContains(done.err, {"rank 3: in.3: No such file or directory"});
  EXPECT_EQ(occurrences(done.err, "error:"), 1u) << done.err;
}

TEST_F(Processes, ARankThatIsKilledIsNamedWithTheOthersDiagnosis) {
  Process process(folder, slow({"--flight-record", folder.file("records")}));
  std::vector<pid_t> children = process.children(world);
  ASSERT_EQ(children.size(), size_t(world));
  process.waitFor("step 1 of 100");
  std::this_thread::sleep_for(std::chrono::milliseconds(500)); // the others wait for rank 2
  kill(children[2], SIGKILL);
  Finished done = process.wait();
  EXPECT_EQ(done.status, 128 + SIGKILL) << done.err;
  std::string rank2 = "rank 2 (pid " + std::to_string(children[2]);
  expectContains(done.err, {(rank2 + ") was killed by SIGKILL").c_str(), "all_reduce.1",
                            (rank2 + " on ").c_str()});
  EXPECT_EQ(occurrences(done.err, "shard-run: error: "), 1u) << done.err;
  for (pid_t child : children)
    EXPECT_TRUE(ends(child));
  Finished report =
      runCommand(folder, "'" SHARD_RUN "' --postmortem '" + folder.file("records") + "'");
  EXPECT_EQ(report.status, 0) << report.err;
  expectContains(report.out, {"missing: rank 2 left no record", "in all_reduce.1"});
}

TEST_F(Processes, AStoppedRankIsWaitedForUntilTheDeadlineAndThenKilled) {
  sleep(sleeper(2, 100)); // in each step, of which none comes near the deadline
  Process process(folder, slow({"--timeout", "4"}));
  std::vector<pid_t> children = process.children(world);
  ASSERT_EQ(children.size(), size_t(world));
  process.waitFor("step 1 of 100");
  kill(children[1], SIGSTOP);
  Finished done = process.wait();
  EXPECT_EQ(done.status, 1) << done.err;
  expectContains(done.err, {"rank 1", "did not complete within", "did not end by itself"});
  for (pid_t child : children)
    EXPECT_TRUE(ends(child));
}

TEST_F(Processes, SignalsEndAllRanks) {
  for (int number : {SIGINT, SIGTERM}) {
    Process process(folder, slow({}));
    std::vector<pid_t> children = process.children(world);
    ASSERT_EQ(children.size(), size_t(world));
    process.waitFor("step 1 of 100");
    kill(process.pid, number);
    Finished done = process.wait();
    EXPECT_EQ(done.status, 128 + number) << done.err;
    expectContains(done.err, {number == SIGINT ? "interrupted" : "terminated"});
    EXPECT_EQ(occurrences(done.err, "shard-run: error: "), 1u) << done.err;
    for (pid_t child : children)
      EXPECT_TRUE(ends(child));
  }
}

TEST_F(Processes, NobodyOutlivesAParentThatIsKilled) {
  Process process(folder, slow({}));
  std::vector<pid_t> children = process.children(world);
  ASSERT_EQ(children.size(), size_t(world));
  kill(process.pid, SIGKILL);
  process.wait();
  for (pid_t child : children)
    EXPECT_TRUE(ends(child));
}

TEST_F(Processes, UnderMpirun) {
  if (runCommand(folder, "command -v mpirun.openmpi").status != 0)
    GTEST_SKIP() << "Open MPI is not installed (openmpi-bin of Debian)";
  const std::string mpirun = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                             "SHARDRT_LOG=info mpirun.openmpi --oversubscribe ";
  std::string wanted = outputOfThreads();
  Finished done = run("--inputs in --outputs out --steps 3", mpirun + "-n 4");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(contents(folder.file("out")), wanted);
  EXPECT_EQ(occurrences(done.out, "forward:"), 1u) << done.out;
  expectContains(done.err, {"communicator: local, 4 processes, shared memory, started by mpirun"});
  done = run("--inputs in", mpirun + "-n 3");
  EXPECT_NE(done.status, 0);
  expectContains(done.err, {"compiled for a world of 4 ranks", "not 3"});
  EXPECT_EQ(occurrences(done.err, "shard-run: error: "), 1u) << done.err;
}

TEST_F(Processes, NobodyOutlivesALauncherThatIsKilled) {
  // A launcher that is killed while its ranks run.
  std::ofstream(folder.file("launcher"))
      << "for RANK in 0 1 2 3; do export RANK; '" SHARD_RUN "' \"$@\" & done; wait\n";
  std::vector<std::string> words{"/bin/sh", folder.file("launcher")}, more = slow({});
  words.insert(words.end(), more.begin() + 2, more.end()); // neither shard-run nor --processes
  Process process(folder, words,
                  {{"WORLD_SIZE", "4"},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", std::to_string(ownPort())},
                   {"SHARDRT_SECRET", ownSecret()}});
  std::vector<pid_t> children = process.children(world);
  ASSERT_EQ(children.size(), size_t(world));
  process.waitFor("step 1 of 100");
  kill(process.pid, SIGKILL);
  process.wait();
  for (pid_t child : children)
    EXPECT_TRUE(ends(child));
  EXPECT_NE(contents(process.err).find("the launcher has ended"), std::string::npos);
}

TEST_F(Processes, UnderTorchrun) {
  if (runCommand(folder, "test -x '" TORCHRUN "'").status != 0)
    GTEST_SKIP() << "PyTorch is not installed in .venv";
  std::string wanted = outputOfThreads();
  Finished done = run("--inputs in --outputs out --steps 3",
                      "'" TORCHRUN "' --standalone --no-python --nproc-per-node 4");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(contents(folder.file("out")), wanted);
  EXPECT_EQ(occurrences(done.out, "forward:"), 1u) << done.out;
}

TEST_F(Processes, OverGloo) {
  if (!std::filesystem::exists(GLOO_PLUGIN))
    GTEST_SKIP() << "there is no plugin of Gloo (libgloo-dev of Debian)";
  std::string wanted = outputOfThreads();
  Finished done = run("--processes --inputs in --outputs out --steps 3 --progress",
                      "SHARDRT_COMMUNICATOR=gloo");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(contents(folder.file("out")), wanted);
  expectContains(done.err, {"communicator: gloo, 4 processes, Gloo"});
}
