// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compute threads of one rank.
#ifndef SHARDC_RUNTIME_THREADS_THREADPOOL_H
#define SHARDC_RUNTIME_THREADS_THREADPOOL_H

#include "runtime/support/Futex.h"

#include <thread>
#include <vector>

namespace shardc::rt {

/// `threads` - 1 workers and the thread that calls parallelFor. Workers spin briefly for the next
/// region, then sleep. One thread calls parallelFor at a time.
class ThreadPool {
public:
  using Body = void (*)(void *arg, int64_t begin, int64_t end);

  /// `ranksHere`: ranks of this process or machine that have such a pool, to judge whether spinning
  /// pays.
  ThreadPool(int threads, uint32_t ranksHere);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;

  int threads() const { return int(workers.size()) + 1; }

  /// Calls body for disjoint ranges that cover [0, n); all but the last have at least `grain`
  /// elements. Returns when all have returned. Inside a body it is one call on the same thread.
  void parallelFor(Body body, void *arg, int64_t n, int64_t grain);

  /// Whether the calling thread is inside a body of any pool.
  static bool insideBody();
  /// Which of its pool's threads the calling one is: 0 is the one that calls parallelFor.
  static int thread();

private:
  void workerMain(int number);
  void takeChunks();

  // The region being run. Written by the caller while no worker is registered; read by workers
  // between registering and deregistering.
  Body body = nullptr;
  void *arg = nullptr;
  int64_t n = 0;
  int64_t chunk = 1;
  alignas(64) std::atomic<int64_t> next{0};
  /// The word workers wait on; its value is the number of the newest region.
  alignas(64) Signal posted;
  std::atomic<uint32_t> open{0};      ///< number of the region that may be joined; even: none
  std::atomic<int32_t> registered{0}; ///< workers that may read the region
  Signal left;                        ///< advances when the last registered worker leaves
  std::atomic<bool> stopping{false};
  const Spin spin;
  std::vector<std::thread> workers;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_THREADS_THREADPOOL_H
