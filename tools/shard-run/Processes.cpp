// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shard-run/Processes.h"

#include "runtime/include/shardrt.hpp"
#include "runtime/manifest/Manifest.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace shardc::run {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char *reportVariable = "SHARDRT_REPORT_FD";

[[noreturn]] void failSystem(const std::string &what) {
  throw std::runtime_error("cannot " + what + ": " + std::strerror(errno));
}

/// Owns a file descriptor.
class File {
public:
  explicit File(int fd = -1) : fd(fd) {}
  File(File &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  File &operator=(File &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~File() { close(); }
  void close() {
    if (fd >= 0)
      ::close(std::exchange(fd, -1));
  }
  int get() const { return fd; }

private:
  int fd;
};

/// A socket at which rank 0 listens for the others, on loopback, and its port.
File listenOnLoopback(uint16_t &port) {
  File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto *raw = reinterpret_cast<sockaddr *>(&address);
  if (socket.get() < 0 || bind(socket.get(), raw, length) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0 || getsockname(socket.get(), raw, &length) != 0)
    failSystem("listen on 127.0.0.1");
  port = ntohs(address.sin_port);
  return socket;
}

std::string randomHex() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != ssize_t(sizeof bytes))
    failSystem("get random bytes");
  std::string text;
  char digits[3];
  for (unsigned char byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

std::string signalName(int number) {
  const char *name = sigabbrev_np(number);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(number);
}

/// One rank.
struct Child {
  pid_t pid = -1;
  File report;      ///< from which it is read why the rank failed
  std::string said; ///< "own" or "echo", a line end, and the message
  bool ended = false;
  int status = 0; ///< as of waitpid
  bool failed() const { return ended && status != 0; }
  bool killed() const { return ended && WIFSIGNALED(status); }
  int exitStatus() const {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

class Launch {
public:
  Launch(const Options &options, int world, char **argv)
      : options(options), argv(argv), secret(randomHex()), children(size_t(world)) {
    sigemptyset(&handled);
    for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
      sigaddset(&handled, number);
    sigprocmask(SIG_BLOCK, &handled, &before);
    signals = File(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
    if (signals.get() < 0)
      failSystem("wait for signals");
  }
  /// Nobody stays behind, whatever happened.
  ~Launch() {
    for (Child &child : children)
      if (child.pid > 0 && !child.ended) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
      }
  }

  void start() {
    uint16_t port = 0;
    File socket = listenOnLoopback(port);
    for (size_t rank = 0; rank < children.size(); ++rank)
      startRank(rank, socket, port);
  }

  int wait() {
    while (std::any_of(children.begin(), children.end(),
                       [](const Child &child) { return !child.ended; })) {
      waitForSomething();
      endStragglers();
    }
    for (Child &child : children)
      readReport(child);
    if (firstFailed < 0 && interrupt == 0)
      return 0;
    printDiagnosis();
    return interrupt ? 128 + interrupt : children[size_t(firstFailed)].exitStatus();
  }

private:
  /// The environment of a rank: that of this process, and its place.
  std::vector<std::string> environmentOf(size_t rank, uint16_t port, int report) const {
    std::pair<const char *, std::string> own[] = {
        {"SHARDRT_RANK", std::to_string(rank)},
        {"SHARDRT_WORLD_SIZE", std::to_string(children.size())},
        {"SHARDRT_LOCAL_RANK", std::to_string(rank)},
        {"SHARDRT_LOCAL_SIZE", std::to_string(children.size())},
        {"SHARDRT_JOB", "shard-run " + std::to_string(getpid())},
        {"SHARDRT_ADDRESS", "127.0.0.1"},
        {"SHARDRT_PORT", std::to_string(port)},
        {"SHARDRT_SECRET", secret},
        {reportVariable, std::to_string(report)},
        {"SHARDRT_LISTEN_FD", rank == 0 ? std::to_string(listenFd) : ""}};
    std::vector<std::string> out;
    for (char **at = environ; *at; ++at) {
      std::string_view text = *at;
      bool replaced = std::any_of(std::begin(own), std::end(own), [&](auto &entry) {
        return text.substr(0, text.find('=')) == entry.first;
      });
      if (!replaced)
        out.emplace_back(text);
    }
    for (auto &[name, value] : own)
      if (!value.empty())
        out.push_back(std::string(name) + "=" + value);
    return out;
  }

  void startRank(size_t rank, const File &socket, uint16_t port) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      failSystem("make a pipe");
    File read(ends[0]), write(ends[1]);
    // Everything that takes memory happens before the fork.
    std::vector<std::string> texts = environmentOf(rank, port, reportFd);
    std::vector<char *> environment;
    for (std::string &text : texts)
      environment.push_back(text.data());
    environment.push_back(nullptr);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
      failSystem("start rank " + std::to_string(rank));
    if (pid == 0)
      becomeRank(rank, parent, socket.get(), write.get(), environment.data());
    children[rank].pid = pid;
    children[rank].report = std::move(read);
    fcntl(children[rank].report.get(), F_SETFL, O_NONBLOCK);
  }

  /// In the new process, which only makes system calls.
  [[noreturn]] void becomeRank(size_t rank, pid_t parent, int socket, int report,
                               char **environment) {
    // If the parent is killed, so is the rank.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
      _exit(128 + SIGKILL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    // Out of the way of the numbers that they get, which stay open in the rank.
    int reportCopy = fcntl(report, F_DUPFD, listenFd + 1);
    int socketCopy = fcntl(socket, F_DUPFD, listenFd + 1);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int nothingCopy = fcntl(nothing, F_DUPFD, listenFd + 1);
    if (nothingCopy < 0 || reportCopy < 0 || socketCopy < 0 || dup2(nothingCopy, 0) < 0 ||
        dup2(reportCopy, reportFd) < 0 || (rank == 0 && dup2(socketCopy, listenFd) < 0))
      _exit(126);
    for (int copy : {reportCopy, socketCopy, nothingCopy})
      close(copy);
    execve("/proc/self/exe", argv, environment);
    _exit(127);
  }

  void waitForSomething() {
    std::vector<pollfd> watched{{signals.get(), POLLIN, 0}};
    for (Child &child : children)
      watched.push_back({child.report.get(), POLLIN, 0}); // negative once it is closed: ignored
    int milliseconds = -1;
    if (deadline)
      milliseconds = int(std::max<int64_t>(
          0,
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count() +
              1));
    poll(watched.data(), nfds_t(watched.size()), milliseconds);
    for (Child &child : children)
      readReport(child);
    signalfd_siginfo info;
    while (read(signals.get(), &info, sizeof info) == ssize_t(sizeof info))
      if (info.ssi_signo != SIGCHLD)
        forward(int(info.ssi_signo));
    reap();
  }

  void readReport(Child &child) {
    char bytes[4096];
    while (child.report.get() >= 0) {
      ssize_t count = read(child.report.get(), bytes, sizeof bytes);
      if (count > 0)
        child.said.append(bytes, size_t(count));
      else if (count == 0)
        child.report.close();
      else if (errno != EINTR)
        return;
    }
  }

  void forward(int number) {
    if (interrupt == 0)
      interrupt = number;
    for (Child &child : children)
      if (!child.ended)
        kill(child.pid, number);
    limit(std::min(options.timeout, mostPatience));
  }

  void reap() {
    for (size_t rank = 0; rank < children.size(); ++rank) {
      Child &child = children[rank];
      if (child.ended || waitpid(child.pid, &child.status, WNOHANG) != child.pid)
        continue;
      child.ended = true;
      if (!child.failed()) {
        // All ranks have agreed that they are through.
        limit(options.timeout);
        continue;
      }
      if (firstFailed < 0)
        firstFailed = int(rank);
      limit(std::min(options.timeout, mostPatience));
    }
  }

  /// Others find out by themselves that a rank has failed, and say what they were in: they have so
  /// many seconds, and two more.
  void limit(double patience) {
    constexpr double most = 1e9; // clocks overflow
    auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(std::min(patience, most) + 2));
    if (!deadline || end < *deadline)
      deadline = end;
  }

  void endStragglers() {
    if (!deadline || Clock::now() < *deadline)
      return;
    for (size_t rank = 0; rank < children.size(); ++rank)
      if (!children[rank].ended) {
        stragglers.push_back(&children[rank]);
        kill(children[rank].pid, SIGKILL);
        if (firstFailed < 0) // the others were through
          firstFailed = int(rank);
      }
    deadline.reset();
    for (Child *child : stragglers)
      if (!child->ended && waitpid(child->pid, &child->status, 0) == child->pid)
        child->ended = true;
  }

  void printDiagnosis() const {
    std::string text;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      const Child &child = children[rank];
      std::string who =
          "rank " + std::to_string(rank) + " (pid " + std::to_string(child.pid) + ") ";
      bool straggler = std::find(stragglers.begin(), stragglers.end(), &child) != stragglers.end();
      if (straggler)
        text += "\n  " + who + "did not end by itself, and was killed";
      else if (child.killed() && WTERMSIG(child.status) != interrupt)
        text += "\n  " + who + "was killed by " + signalName(WTERMSIG(child.status));
      else if (child.failed() && WEXITSTATUS(child.status) >= 126 && child.said.empty() &&
               !interrupt)
        text += "\n  " + who + "could not be started";
    }
    std::string said = diagnosis();
    if (said.empty() && interrupt)
      said = signalName(interrupt);
    if (said.empty() && text.empty())
      said = "rank " + std::to_string(firstFailed) + " failed with exit status " +
             std::to_string(children[size_t(firstFailed)].exitStatus());
    if (said.empty()) // begin with the first line of the list
      text.erase(0, 3);
    std::fprintf(stderr, "shard-run: error: %s%s\n", said.c_str(), text.c_str());
  }

  /// What the rank says whose own failure it was, or the first that heard of it.
  std::string diagnosis() const {
    std::string echo;
    for (const Child &child : children) {
      size_t line = child.said.find('\n');
      if (line == std::string::npos)
        continue;
      std::string message = child.said.substr(line + 1);
      if (child.said.compare(0, line, "own") == 0)
        return message;
      if (echo.empty())
        echo = message;
    }
    return echo;
  }

  // Descriptors in a rank.
  static constexpr int reportFd = 3, listenFd = 4;
  /// At most so many seconds, and 2 more, after the first failure.
  static constexpr double mostPatience = 8;

  const Options &options;
  char **const argv;
  const std::string secret;
  std::vector<Child> children;
  sigset_t handled, before;
  File signals;
  int firstFailed = -1;
  int interrupt = 0; ///< a signal that came to this process
  std::optional<Clock::time_point> deadline;
  std::vector<Child *> stragglers;
};

/// Each of the processes would start all ranks.
void refuseLaunchers() {
  struct Launcher {
    const char *size, *rank, *name;
  };
  for (const Launcher &l :
       {Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "mpirun"},
        Launcher{"PMI_SIZE", "PMI_RANK", "mpiexec"}, Launcher{"WORLD_SIZE", "RANK", "torchrun"}}) {
    const char *size = std::getenv(l.size);
    if (size && std::getenv(l.rank) && std::atoi(size) > 1)
      throw UsageError(std::string("started by ") + l.name + " (" + l.size + "=" + size +
                       "), whose processes are the ranks: leave out --processes");
  }
}

} // namespace

int runProcesses(const Options &options, char **argv) {
  refuseLaunchers();
  int world = 0;
  {
    shardrt::Artifact artifact(options.artifact);
    world = int(rt::Manifest::parse(artifact.json()).worldSize);
  }
  if (options.ranks && *options.ranks != world)
    throw UsageError(options.artifact + ": it was compiled for a world of " +
                     std::to_string(world) + " ranks, not " + std::to_string(*options.ranks));
  Launch launch(options, world, argv);
  launch.start();
  return launch.wait();
}

bool isChild() { return std::getenv(reportVariable) != nullptr; }

bool tellParent(const std::string &message, bool isOwn) {
  const char *text = std::getenv(reportVariable);
  if (!text)
    return false;
  std::string all = (isOwn ? "own\n" : "echo\n") + message;
  int fd = std::atoi(text);
  for (size_t at = 0; at < all.size();) {
    ssize_t count = write(fd, all.data() + at, all.size() - at);
    if (count < 0 && errno != EINTR)
      return false;
    at += size_t(std::max<ssize_t>(count, 0));
  }
  return true;
}

} // namespace shardc::run
