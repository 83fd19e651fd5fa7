// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sleeping on a 32-bit word with a time limit (std::atomic::wait has none).
#ifndef SHARDC_RUNTIME_SUPPORT_FUTEX_H
#define SHARDC_RUNTIME_SUPPORT_FUTEX_H

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace shardc::rt {

using Clock = std::chrono::steady_clock;

/// For those who are woken: only a bound on how long a lost chance to look again can last.
inline constexpr std::chrono::seconds longestSleep(1);

/// Returns when the word may have changed from `seen`, when woken, or after `limit`; may return
/// early. `betweenProcesses`: the word lies in memory that they share.
inline void futexWait(std::atomic<uint32_t> &word, uint32_t seen, std::chrono::nanoseconds limit,
                      bool betweenProcesses = false) {
  static_assert(sizeof(std::atomic<uint32_t>) == 4);
  if (limit.count() <= 0)
    return;
  timespec relative{};
  relative.tv_sec = time_t(limit.count() / 1000000000);
  relative.tv_nsec = long(limit.count() % 1000000000);
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word),
          betweenProcesses ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, seen, &relative, nullptr, 0);
}

inline void futexWake(std::atomic<uint32_t> &word, bool betweenProcesses = false) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word),
          betweenProcesses ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// Tells the core that this is a spin loop.
inline void spinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How long a thread stays awake while it waits. It lets others run in between: the one that is
/// waited for may need this core, and a yield costs little where nobody else wants it.
struct Spin {
  std::chrono::nanoseconds time{0};
  bool alone = true; ///< looks a few dozen times before it first yields

  /// For one of `threads` that work together.
  static Spin among(uint32_t threads, std::chrono::nanoseconds time) {
    return {time, std::thread::hardware_concurrency() >= threads};
  }
};

/// A word that threads, or processes, wait to change. A change is seen by acquire, made by release;
/// it costs a system call only when somebody sleeps.
class Signal {
public:
  explicit Signal(bool betweenProcesses = false) : betweenProcesses(betweenProcesses) {}

  uint32_t load() const { return word.load(std::memory_order_acquire); }

  /// Makes everything before it visible to those who see the change.
  void advance() {
    // Sequentially consistent with the waiter's increment of `sleepers`: either this thread sees
    // the sleeper, or the sleeper's futex call sees the new word.
    word.fetch_add(1, std::memory_order_seq_cst);
    wake();
  }
  /// Lets sleepers look again without a change of the word.
  void wake() {
    if (sleepers.load(std::memory_order_seq_cst) != 0)
      futexWake(word, betweenProcesses);
  }

  /// Waits until the word differs from `seen`, awake as `spin` says and then asleep for at most
  /// `limit`. Returns whether it differs.
  bool wait(uint32_t seen, const Spin &spin, std::chrono::nanoseconds limit) {
    if (load() != seen)
      return true;
    for (int i = 0; spin.alone && i < 64; ++i) {
      if (load() != seen)
        return true;
      spinPause();
    }
    if (spin.time.count() > 0)
      for (Clock::time_point until = Clock::now() + spin.time; Clock::now() < until;) {
        if (load() != seen)
          return true;
        sched_yield();
      }
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    futexWait(word, seen, limit, betweenProcesses);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
    return load() != seen;
  }

private:
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};
  const bool betweenProcesses;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_FUTEX_H
