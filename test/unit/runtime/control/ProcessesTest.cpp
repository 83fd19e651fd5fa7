// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are processes: one is killed, stopped, or ends without a word.
#include "test/unit/runtime/control/Planes.h"

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

using namespace shardc::rt;
using namespace test;

namespace {

/// A process of control_rank and what it says.
class Rank {
public:
  Rank(uint32_t rank, uint32_t size, const std::string &job, std::vector<std::string> arguments) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    arguments.insert(arguments.begin(), CONTROL_RANK);
    std::vector<std::string> environment = {
        "SHARDRT_RANK=" + std::to_string(rank), "SHARDRT_WORLD_SIZE=" + std::to_string(size),
        "SHARDRT_LOCAL_SIZE=" + std::to_string(size), "SHARDRT_JOB=" + job};
    std::vector<char *> argv, envp;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    for (std::string &variable : environment)
      envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    EXPECT_EQ(posix_spawn(&pid, CONTROL_RANK, &actions, nullptr, argv.data(), envp.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out = ends[0];
  }
  Rank(Rank &&other) noexcept
      : pid(std::exchange(other.pid, 0)), out(std::exchange(other.out, -1)), said(other.said) {}
  ~Rank() {
    signal(SIGKILL);
    finish();
  }
  void signal(int number) {
    if (pid > 0)
      kill(pid, number);
  }
  /// Reads until it says this, or its end.
  bool says(const std::string &text) {
    char bytes[4096];
    while (!contains(said, text)) {
      ssize_t got = read(out, bytes, sizeof bytes);
      if (got <= 0)
        return false;
      said.append(bytes, size_t(got));
    }
    return true;
  }
  /// Waits for its end; everything that it said.
  const std::string &finish() {
    says("\n\n"); // never: reads to the end
    if (pid > 0)
      waitpid(std::exchange(pid, 0), nullptr, 0);
    if (out >= 0)
      close(std::exchange(out, -1));
    return said;
  }

private:
  pid_t pid = 0;
  int out = -1;
  std::string said;
};

std::vector<Rank> startRanks(uint32_t size, const std::vector<std::string> &arguments) {
  std::string job = freshJob();
  std::vector<Rank> ranks;
  for (uint32_t r = 0; r < size; ++r)
    ranks.emplace_back(r, size, job, arguments);
  for (Rank &rank : ranks)
    EXPECT_TRUE(rank.says("joined"));
  return ranks;
}

class ControlProcesses : public testing::TestWithParam<uint32_t> {};

} // namespace

TEST(ControlProcess, RanksMeetAndLeave) {
  std::vector<Rank> ranks = startRanks(6, {"--barriers", "50", "--deadline", "60"});
  for (Rank &rank : ranks)
    EXPECT_CONTAINS(rank.finish(), "done");
}

TEST_P(ControlProcesses, SurvivorsOfAKilledRankLearnAtOnce) {
  uint32_t victim = GetParam();
  std::vector<Rank> ranks = startRanks(7, {"--deadline", "600"});
  ranks[victim].signal(SIGKILL);
  std::string name = "rank " + std::to_string(victim);
  for (uint32_t r = 0; r < 7; ++r)
    if (r != victim) {
      const std::string &said = ranks[r].finish();
      EXPECT_CONTAINS(said, "failed 7: the barrier: given up because of " + name);
      EXPECT_CONTAINS(said, "has died: its connections were closed");
    }
}

TEST_P(ControlProcesses, AStoppedRankIsNamedAtTheDeadline) {
  uint32_t victim = GetParam();
  // Long enough that no rank exceeds it that only has to wait for a processor.
  std::vector<Rank> ranks = startRanks(7, {"--deadline", "3"});
  ranks[victim].signal(SIGSTOP);
  std::string name = "rank " + std::to_string(victim);
  for (uint32_t r = 0; r < 7; ++r)
    if (r != victim) {
      const std::string &said = ranks[r].finish();
      EXPECT_CONTAINS(said, "failed 6: the barrier");
      EXPECT_CONTAINS(said, name + " (pid ");
      EXPECT_CONTAINS(said, "does not answer");
    }
  ranks[victim].signal(SIGCONT);
  EXPECT_CONTAINS(ranks[victim].finish(), "failed ");
}

TEST_P(ControlProcesses, ARankThatEndsWithoutAWordIsNoticed) {
  uint32_t victim = GetParam();
  std::string job = freshJob();
  std::vector<Rank> ranks;
  for (uint32_t r = 0; r < 7; ++r)
    ranks.emplace_back(r, 7, job,
                       r == victim ? std::vector<std::string>{"--barriers", "3", "--exit"}
                                   : std::vector<std::string>{"--deadline", "600"});
  for (uint32_t r = 0; r < 7; ++r)
    if (r != victim) {
      EXPECT_CONTAINS(ranks[r].finish(), "rank " + std::to_string(victim) + " (pid ");
    }
}

INSTANTIATE_TEST_SUITE_P(Victims, ControlProcesses, testing::Values(0, 1, 5),
                         testing::PrintToStringParamName());
