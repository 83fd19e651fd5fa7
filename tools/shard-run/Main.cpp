// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// shard-run: runs a program compiled by shardc.
#include "tools/shard-run/RunReport.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>
#include <unistd.h>

using namespace shardc::run;

namespace {

/// Ends all ranks on SIGINT and SIGTERM. The signals are blocked in every thread and taken by one,
/// so that the ranks can be told in the ordinary way.
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
  }
  /// The signal that came, or 0.
  int received() const { return signal; }

private:
  void watch() {
    constexpr timespec interval{0, 100000000};
    while (!done) {
      int number = sigtimedwait(&signals, nullptr, &interval);
      if (number <= 0)
        continue;
      signal = number;
      {
        std::lock_guard lock(mutex);
        if (session)
          session->abort(number == SIGINT ? "interrupted" : "terminated");
      }
      // Ranks that compute for long without communicating are not waited for.
      for (int i = 0; i < 20 && !done; ++i)
        nanosleep(&interval, nullptr);
      if (!done)
        _exit(128 + number);
    }
  }

  sigset_t signals;
  std::mutex mutex;
  Session *session = nullptr;
  std::atomic<int> signal{0};
  std::atomic<bool> done{false};
  std::thread thread;
};

int runProgram(const Options &options, SignalWatch &watch) {
  if (options.manifest) {
    std::printf("%s\n", shardrt::Artifact(options.artifact).json().c_str());
    return 0;
  }
  Session session(options);
  struct Watching {
    SignalWatch &watch;
    ~Watching() { watch.watchOver(nullptr); }
  } watching{watch};
  watch.watchOver(&session);
  session.run();
  session.writeOutputs();
  session.writeTrace();
  if (options.check && !options.json)
    std::puts("memory: whatever the program read or returned had been written");
  printSummary(session, options);
  if (options.profile && !options.json)
    printProfile(session, options);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  int signal = 0;
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
    SignalWatch watch;
    try {
      return runProgram(options, watch);
    } catch (...) {
      signal = watch.received();
      throw;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "shard-run: error: %s\n", error.what());
  }
  return signal ? 128 + signal : 1;
}
