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

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace test {

/// A world in progress. Its processes end with the test, whatever happens to that.
class Processes {
public:
  using Body = std::function<void(shardc::rt::Communicator &)>;

  Processes(uint32_t world, const Body &body,
            shardc::rt::Sharing sharing = shardc::rt::Sharing::Automatic, double joinSeconds = 60)
      : joinSeconds(joinSeconds), steps(world), left(world) {
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

  /// By a rank, in its process: it has done something once more.
  static void step() {
    if (ownSteps)
      ++*ownSteps;
  }
  /// Waits until every rank has done that so often. False if one has ended before.
  bool awaitSteps(uint64_t count) const {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank)
      while (steps[rank] < count) {
        siginfo_t ended{};
        if (waitid(P_PID, id_t(ranks[rank].pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            ended.si_pid != 0)
          return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    return true;
  }

  /// What is left of the memory that these ranks shared, once they have ended: their sockets, files
  /// that they had in /dev/shm, and mappings of this process. What other processes of the machine
  /// have does not count.
  size_t traces() const {
    size_t count = 0;
    std::string line;
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);)
      count += line.find("memfd:shardrt") != std::string::npos;
    std::set<std::string> bound; // inodes
    for (std::ifstream sockets("/proc/net/unix"); std::getline(sockets, line);) {
      std::istringstream words(line);
      std::vector<std::string> columns{std::istream_iterator<std::string>(words), {}};
      if (columns.size() > 6)
        bound.insert(columns[6]);
    }
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      for (const std::atomic<uint64_t> &inode : left[rank].sockets)
        count += inode != 0 && bound.contains(std::to_string(inode));
      count += left[rank].files;
    }
    return count;
  }

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

  /// Memory of the test and its ranks, zeros at first.
  template <typename T> struct Common {
    explicit Common(size_t count)
        : bytes(count * sizeof(T)),
          data(static_cast<T *>(
              mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
      if (data == MAP_FAILED)
        std::abort();
    }
    ~Common() { munmap(data, bytes); }
    Common(const Common &) = delete;
    T &operator[](size_t i) const { return data[i]; }

    const size_t bytes;
    T *const data;
  };
  /// What a rank has that must not stay.
  struct Left {
    std::array<std::atomic<uint64_t>, 64> sockets; ///< inodes
    std::atomic<uint64_t> files;                   ///< open or mapped in /dev/shm
  };

  /// By a rank that has joined.
  static void noteLeft(Left &mine) {
    size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone; // the folder's own
      std::string target = std::filesystem::read_symlink(entry, gone).string();
      if (target.starts_with("socket:[") && count < mine.sockets.size())
        mine.sockets[count++] = std::stoull(target.substr(8));
      mine.files += target.starts_with("/dev/shm/");
    }
    std::string line;
    for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);)
      mine.files += line.find(" /dev/shm/") != std::string::npos;
  }

  /// What a process of the world does.
  [[noreturn]] void run(uint32_t rank, uint32_t world, const Body &body,
                        shardc::rt::Sharing sharing, int pipe) const {
    using namespace shardc::rt;
    Outcome outcome;
    const bool before = ::testing::Test::HasFailure();
    ownSteps = &steps[rank];
    try {
      ControlOptions options;
      options.rank = rank;
      options.worldSize = world;
      options.job = job;
      options.timeoutSeconds = joinSeconds;
      std::shared_ptr<ControlPlane> plane = joinControlPlane(options);
      auto end = makeSharedMemoryEnd(std::move(plane), deadlineAfter(60), sharing);
      noteLeft(left[rank]);
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

  static inline std::atomic<uint64_t> *ownSteps = nullptr;

  const double joinSeconds;
  const Common<std::atomic<uint64_t>> steps; ///< by rank
  const Common<Left> left;                   ///< by rank
  std::string job;
  std::vector<Rank> ranks;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_PROCESSES_H
