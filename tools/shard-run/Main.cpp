// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// shard-run: runs a program compiled by shardc.
#include "tools/shard-run/PostmortemReport.h"
#include "tools/shard-run/Processes.h"
#include "tools/shard-run/RunReport.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <unistd.h>

using namespace shardc::run;

namespace {

/// Ends all ranks on SIGINT and SIGTERM, and when the launcher of a rank that is a process has
/// ended and left it behind. The signals are blocked in every thread and taken by one, so that the
/// ranks can be told in the ordinary way.
class SignalWatch {
public:
  SignalWatch() {
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    thread = std::thread([this] { watch(); });
  }
  ~SignalWatch() {
    done = true;
    thread.join();
  }
  void watchOver(Session *newSession) {
    std::lock_guard lock(mutex);
    session = newSession;
    if (session && signal) // it came while the ranks were joining
      session->abort(reason);
  }
  /// The signal that came, or 0.
  int received() const { return signal; }

private:
  void watch() {
    constexpr timespec interval{0, 100000000};
    while (!done) {
      int number = sigtimedwait(&signals, nullptr, &interval);
      const char *why = number == SIGINT ? "interrupted" : "terminated";
      if (number <= 0 && wasLeftBehind()) {
        number = SIGTERM;
        why = "the launcher has ended";
      }
      if (number <= 0)
        continue;
      {
        std::lock_guard lock(mutex);
        reason = why;
        signal = number;
        if (session)
          session->abort(reason);
      }
      // Ranks that compute for long without communicating are not waited for.
      for (int i = 0; i < 20 && !done; ++i)
        nanosleep(&interval, nullptr);
      if (!done)
        _exit(128 + number);
    }
  }

  bool wasLeftBehind() {
    std::lock_guard lock(mutex);
    return session && session->isDistributed() && getppid() != parent;
  }

  const pid_t parent = getppid();
  sigset_t signals;
  std::mutex mutex;
  Session *session = nullptr;
  std::string reason; ///< of the signal that came; guarded by mutex
  std::atomic<int> signal{0};
  std::atomic<bool> done{false};
  std::thread thread;
};

int runProgram(std::optional<Session> &session, const Options &options, SignalWatch &watch) {
  session.emplace(options);
  struct Watching {
    SignalWatch &watch;
    ~Watching() { watch.watchOver(nullptr); }
  } watching{watch};
  watch.watchOver(&*session);
  session->prepare();
  session->initialise();
  if (session->trains())
    session->train();
  else
    session->run();
  session->write();
  if (!session->reports())
    return 0;
  if (options.check && !options.json)
    std::puts("memory: whatever the program read or returned had been written");
  // The log has the lines of a training.
  if (!session->trains() || options.json)
    printSummary(*session, options);
  if (options.profile && !options.json)
    printProfile(*session, options);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

/// Says why this process failed: to the parent, or on standard error if no other rank says it.
void report(const Session *session, const std::exception &error) {
  auto *ofRuntime = dynamic_cast<const shardrt::Error *>(&error);
  bool isOwn = !ofRuntime || ofRuntime->status != SHARDRT_ABORTED;
  std::string message = error.what();
  if (dynamic_cast<const ToldByRankZero *>(&error) || tellParent(message, isOwn))
    return;
  std::string who;
  if (int rank = session ? session->rank() : shardrt_environment_rank(); rank > 0) {
    // All ranks hear of deadlines and of ranks that are lost. Rank 0 speaks for all, or rank 1 if
    // the matter is rank 0. While they choose a communicator, all ranks know the same.
    bool shared = !isOwn || (ofRuntime && (ofRuntime->status == SHARDRT_TIMEOUT ||
                                           ofRuntime->status == SHARDRT_MISMATCH));
    shared |= !session && ofRuntime && ofRuntime->status == SHARDRT_NOT_FOUND;
    bool aboutRankZero = message.find("rank 0") != std::string::npos;
    if (shared && !(aboutRankZero && rank == 1))
      return;
    who = "rank " + std::to_string(rank) + ": ";
  }
  std::fprintf(stderr, "shard-run: error: %s%s\n", who.c_str(), message.c_str());
}

} // namespace

int main(int argc, char **argv) {
  int signal = 0;
  std::optional<Session> session;
  try {
    Options options = parseOptions(argc, argv);
    if (options.help) {
      std::fputs(helpText(), stdout);
      return 0;
    }
    if (options.version) {
      std::printf("shard-run, shardrt %s\n", shardrt_version());
      return 0;
    }
    if (!options.postmortem.empty())
      return printPostmortem(options.postmortem, options.json);
    if (options.manifest) {
      std::printf("%s\n", shardrt::Artifact(options.artifact).json().c_str());
      return 0;
    }
    if (!options.flightRecord.empty())
      setenv("SHARDRT_FLIGHT_DIR", options.flightRecord.c_str(), 1);
    if (options.processes && !isChild())
      return runProcesses(options, argv);
    SignalWatch watch;
    try {
      return runProgram(session, options, watch);
    } catch (...) {
      signal = watch.received();
      throw;
    }
  } catch (const std::exception &error) {
    report(session ? &*session : nullptr, error);
  }
  return signal ? 128 + signal : 1;
}
