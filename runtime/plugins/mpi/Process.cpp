// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/mpi/Process.h"

#include "runtime/plugins/mpi/Operations.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace shardc::plugin {

namespace {

using Clock = std::chrono::steady_clock;

/// How long the others have to say why the world was given up, after this process has heard of it.
constexpr std::chrono::milliseconds lastWords(800);

MPI_Comm everybody = MPI_COMM_NULL;
bool begun = false, owned = false;
std::mutex failing; ///< guards failedAt
Clock::time_point failedAt{};
std::atomic<bool> failed{false};
std::atomic<double> endSeconds{0}; ///< for MPI_Finalize; 0: without limit

/// Ends the process if it has not been told within so many seconds that MPI_Finalize is through,
/// which cannot be interrupted.
class EndWatch {
public:
  EndWatch(double seconds, int rank) : thread([this, seconds, rank] { watch(seconds, rank); }) {}
  ~EndWatch() {
    {
      std::lock_guard lock(mutex);
      through = true;
    }
    changed.notify_one();
    thread.join();
  }

private:
  void watch(double seconds, int rank) {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return through; }))
      return;
    std::fprintf(stderr,
                 "shardrt: rank %d: error: MPI_Finalize did not complete within %.3g s: another "
                 "process has not come to its end\n",
                 rank, seconds);
    std::fflush(stdout);
    _exit(1);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool through = false;
  std::thread thread;
};

/// Runs when the process ends normally, before MPI's own handlers.
void endMpi() {
  if (failed) {
    std::lock_guard lock(failing);
    std::this_thread::sleep_until(failedAt + lastWords);
    return;
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized)
    return;
  int rank = 0;
  MPI_Comm_rank(everybody, &rank);
  std::optional<EndWatch> watch;
  if (endSeconds > 0)
    watch.emplace(endSeconds, rank);
  freeOperations();
  MPI_Comm_free(&everybody);
  MPI_Finalize();
}

const char *levelName(int level) {
  return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
         : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
         : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                          : "MPI_THREAD_MULTIPLE";
}

} // namespace

void check(int code, const char *function) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Failure{SHARDRT_ABORTED, std::string(function) + ": " + std::string(text, size_t(length))};
}

const char *libraryVersion() {
  // "Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\nMPICH Release date: ..."
  static const std::string version = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string all(text, size_t(length));
    all = all.substr(0, all.find_first_of(",\n"));
    for (const char *noise : {" Version:\t", " v"})
      if (size_t at = all.find(noise); at != std::string::npos)
        all.replace(at, std::char_traits<char>::length(noise), " ");
    return all;
  }();
  return version.c_str();
}

void beginMpi() {
  if (failed)
    throw Failure{SHARDRT_ABORTED, "MPI cannot be used after a failure in this process"};
  if (begun)
    return;
  int initialized = 0, finalized = 0, level = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    throw Failure{SHARDRT_ABORTED, "the program has called MPI_Finalize already"};
  if (initialized) {
    MPI_Query_thread(&level);
  } else {
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    owned = true;
  }
  if (level < MPI_THREAD_SERIALIZED)
    throw Failure{
        SHARDRT_INCOMPATIBLE,
        std::string(libraryVersion()) + " offers " + levelName(level) +
            ", and MPI_THREAD_SERIALIZED is needed: collectives run on a thread of "
            "their own" +
            (owned ? "" : " (the program itself has initialised MPI: let it ask for more)")};
  check(MPI_Comm_dup(MPI_COMM_WORLD, &everybody), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(everybody, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  makeOperations();
  begun = true;
  if (owned)
    std::atexit(endMpi);
}

MPI_Comm world() { return everybody; }

void limitEnd(double seconds) {
  constexpr double most = 1e9; // clocks overflow
  endSeconds = std::min(seconds, most);
}

void giveUpMpi() {
  std::lock_guard lock(failing);
  if (!failed)
    failedAt = Clock::now();
  failed = true;
}

Backoff::Backoff(int64_t bytes)
    : begin(Clock::now()),
      awake(begin + std::chrono::microseconds(50) + std::chrono::nanoseconds(bytes)) {} // 1 GB/s

void Backoff::pause() {
  Clock::time_point now = Clock::now();
  if (now < awake) {
    sched_yield();
    return;
  }
  auto nap = std::clamp<std::chrono::nanoseconds>((now - begin) / 16, std::chrono::microseconds(5),
                                                  std::chrono::milliseconds(1));
  std::this_thread::sleep_for(nap);
}

void waitFor(std::vector<MPI_Request> &requests, int64_t bytes, const std::function<bool()> &stop,
             const char *function) {
  for (Backoff backoff(bytes);; backoff.pause()) {
    int done = 0;
    check(MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), function);
    if (done)
      return;
    if (stop()) {
      giveUpMpi();
      throw Failure{SHARDRT_ABORTED, std::string(function) + ": it was stopped"};
    }
  }
}

void callBlocking(std::function<void()> function, const std::function<bool()> &stop) {
  struct Shared {
    std::function<void()> function;
    std::atomic<bool> done{false};
    std::exception_ptr problem;
  };
  auto shared = std::make_shared<Shared>();
  shared->function = std::move(function);
  std::thread thread([shared] {
    try {
      shared->function();
    } catch (...) {
      shared->problem = std::current_exception();
    }
    shared->done.store(true, std::memory_order_release);
  });
  for (Backoff backoff(0); !shared->done.load(std::memory_order_acquire); backoff.pause())
    if (stop()) {
      giveUpMpi();
      thread.detach();
      throw Failure{SHARDRT_ABORTED, "it was stopped"};
    }
  thread.join();
  if (shared->problem)
    std::rethrow_exception(shared->problem);
}

} // namespace shardc::plugin
