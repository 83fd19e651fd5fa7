// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Worlds whose ranks are processes of this machine, forked from the test, over the control plane
// that users have.
#ifndef SHARDC_TEST_UNIT_RUNTIME_PROCESSES_H
#define SHARDC_TEST_UNIT_RUNTIME_PROCESSES_H

#include "runtime/control/Socket.h"
#include "runtime/control/TcpControlPlane.h"
#include "runtime/shared/SharedMemory.h"
#include "test/unit/runtime/Ranks.h"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/wait.h>

namespace test {

/// A world in progress. Its processes end with the test, whatever happens to that.
class Processes {
public:
  using Body = std::function<void(shardc::rt::Communicator &)>;

  Processes(uint32_t world, const Body &body,
            shardc::rt::Sharing sharing = shardc::rt::Sharing::Automatic, double joinSeconds = 20)
      : joinSeconds(joinSeconds) {
    static int worlds = 0;
    job = "shardrt-test-" + std::to_string(getpid()) + "-" + std::to_string(worlds++);
    for (uint32_t rank = 0; rank < world; ++rank) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0)
        std::abort();
      pid_t pid = fork();
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(rank, world, body, sharing, ends[1]);
      }
      ranks.push_back({pid, shardc::rt::Descriptor(ends[0])});
      close(ends[1]);
    }
  }
  ~Processes() {
    for (Rank &rank : ranks)
      if (!rank.ended)
        send(rank.pid, SIGKILL);
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      wait(rank);
  }
  Processes(const Processes &) = delete;

  void signal(uint32_t rank, int number) { send(ranks[rank].pid, number); }

  /// Waits for the end of a rank. Status SHARDRT_INTERNAL if it was killed.
  Outcome wait(uint32_t number) {
    Rank &rank = ranks[number];
    if (rank.ended)
      return rank.outcome;
    std::string said;
    char buffer[4096];
    for (ssize_t got; (got = read(rank.pipe.get(), buffer, sizeof buffer)) > 0;)
      said.append(buffer, size_t(got));
    int status = 0;
    waitpid(rank.pid, &status, 0);
    rank.ended = true;
    rank.outcome = {SHARDRT_INTERNAL, "ended by signal " + std::to_string(WTERMSIG(status))};
    if (WIFEXITED(status))
      rank.outcome = {said.empty() ? SHARDRT_INTERNAL : shardrt_status(said[0]),
                      said.empty() ? "said nothing" : said.substr(1)};
    return rank.outcome;
  }
  std::vector<Outcome> waitAll() {
    std::vector<Outcome> outcomes;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      outcomes.push_back(wait(rank));
    return outcomes;
  }

private:
  struct Rank {
    pid_t pid;
    shardc::rt::Descriptor pipe;
    bool ended = false;
    Outcome outcome = {};
  };

  static void send(pid_t pid, int number) { kill(pid, number); }

  /// What a process of the world does.
  [[noreturn]] void run(uint32_t rank, uint32_t world, const Body &body,
                        shardc::rt::Sharing sharing, int pipe) const {
    using namespace shardc::rt;
    Outcome outcome;
    const bool before = ::testing::Test::HasFailure();
    try {
      ControlOptions options;
      options.rank = rank;
      options.worldSize = world;
      options.job = job;
      options.timeoutSeconds = joinSeconds;
      std::shared_ptr<ControlPlane> plane = joinControlPlane(options);
      auto end = makeSharedMemoryEnd(std::move(plane), deadlineAfter(20), sharing);
      body(*end);
    } catch (const Failure &failure) {
      outcome = {failure.status, failure.message};
    }
    if (::testing::Test::HasFailure() && !before)
      outcome = {SHARDRT_INTERNAL, "a check has failed in this rank: " + outcome.message};
    std::string said = char(outcome.status) + outcome.message;
    ssize_t written = write(pipe, said.data(), said.size());
    _exit(written == ssize_t(said.size()) ? 0 : 1);
  }

  const double joinSeconds;
  std::string job;
  std::vector<Rank> ranks;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_PROCESSES_H
