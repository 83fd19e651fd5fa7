// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/threads/ThreadPool.h"

#include <algorithm>
#include <utility>

namespace shardc::rt {

namespace {

thread_local bool inBody = false;
thread_local int threadNumber = 0;

/// A worker that sleeps costs several microseconds to wake; spinning for longer than a typical gap
/// between regions wastes a core that another rank might use.
constexpr std::chrono::microseconds awake(50);

} // namespace

ThreadPool::ThreadPool(int threads, uint32_t ranksHere)
    : spin(Spin::among(uint32_t(threads) * ranksHere, awake)) {
  for (int i = 1; i < threads; ++i)
    workers.emplace_back([this, i] { workerMain(i); });
}

ThreadPool::~ThreadPool() {
  stopping.store(true, std::memory_order_release);
  posted.advance();
  for (std::thread &worker : workers)
    worker.join();
}

bool ThreadPool::insideBody() { return inBody; }

int ThreadPool::thread() { return threadNumber; }

void ThreadPool::takeChunks() {
  while (true) {
    int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
    if (begin >= n)
      return;
    body(arg, begin, std::min(n, begin + chunk));
  }
}

void ThreadPool::parallelFor(Body newBody, void *newArg, int64_t count, int64_t grain) {
  if (count <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  if (inBody || workers.empty() || count < 2 * grain) {
    bool before = std::exchange(inBody, true);
    newBody(newArg, 0, count);
    inBody = before;
    return;
  }
  // A few chunks per thread even out threads that start late or share their core.
  int64_t pieces = std::min<int64_t>(count / grain, int64_t(threads()) * 4);
  body = newBody;
  arg = newArg;
  n = count;
  chunk = (count + pieces - 1) / pieces;
  next.store(0, std::memory_order_relaxed);
  open.fetch_add(1, std::memory_order_seq_cst); // odd: may be joined; publishes the region
  posted.advance();
  inBody = true;
  takeChunks();
  inBody = false;
  // Close it, then wait for those who joined. A worker registers first and then looks whether the
  // region is open: either it sees that it is closed, or it is seen here.
  open.fetch_add(1, std::memory_order_seq_cst);
  while (true) {
    uint32_t seen = left.load();
    if (registered.load(std::memory_order_seq_cst) == 0)
      return;
    left.wait(seen, spin, longestSleep);
  }
}

void ThreadPool::workerMain(int number) {
  inBody = true;
  threadNumber = number;
  uint32_t seen = 0;
  while (true) {
    if (!posted.wait(seen, spin, longestSleep))
      continue;
    seen = posted.load();
    if (stopping.load(std::memory_order_acquire))
      return;
    registered.fetch_add(1, std::memory_order_seq_cst);
    if (open.load(std::memory_order_seq_cst) & 1)
      takeChunks();
    if (registered.fetch_sub(1, std::memory_order_seq_cst) == 1)
      left.advance();
  }
}

} // namespace shardc::rt
