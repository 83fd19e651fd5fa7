// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream of a device that is a thread: what is enqueued runs in order, behind the caller's back.
#ifndef SHARDC_TEST_UNIT_RUNTIME_TOYSTREAM_H
#define SHARDC_TEST_UNIT_RUNTIME_TOYSTREAM_H

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace test {

class ToyStream {
public:
  ToyStream() : thread([this] { main(); }) {}
  ~ToyStream() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  void push(std::function<void()> work) {
    std::lock_guard lock(mutex);
    queue.push_back(std::move(work));
    changed.notify_all();
  }
  bool idle() {
    std::lock_guard lock(mutex);
    return queue.empty();
  }
  /// Until everything that was pushed has run. `poll` is called meanwhile, and once after it; it
  /// may throw.
  void wait(const std::function<void()> &poll) {
    while (!idle()) {
      poll();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    poll();
  }

private:
  void main() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (queue.empty())
        return;
      lock.unlock();
      queue.front()(); // only this thread takes things out
      lock.lock();
      queue.pop_front();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool stopping = false;
  std::thread thread;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_TOYSTREAM_H
