// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What went wrong first in a call of a program.
#ifndef SHARDC_RUNTIME_EXECUTOR_FAILURERECORD_H
#define SHARDC_RUNTIME_EXECUTOR_FAILURERECORD_H

#include "runtime/support/Failure.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace shardc::rt {

/// Kernels write it, on any thread and as often as they like; the first write is kept. It is read
/// when the call is complete, and before anything that the program computed leaves the rank. While
/// nothing has failed it costs a load.
class FailureRecord {
public:
  bool failed() const { return has.load(std::memory_order_acquire); }

  /// `describe` returns a Failure and is called only for the first one. Returns the status that is
  /// kept.
  template <typename Describe> shardrt_status record(Describe describe) {
    if (!failed()) {
      std::lock_guard lock(mutex);
      if (!first) {
        first.emplace(describe());
        has.store(true, std::memory_order_release);
      }
    }
    return status();
  }

  /// SHARDRT_OK if nothing has failed.
  shardrt_status status() const { return failed() ? first->status : SHARDRT_OK; }

  /// For a call that is complete: throws what failed, if something did.
  void raise() const {
    if (failed())
      throw Failure(*first);
  }

  /// Only while no call is in progress.
  void reset() {
    has.store(false, std::memory_order_relaxed);
    first.reset();
  }

private:
  std::mutex mutex;
  std::optional<Failure> first; ///< not changed any more once `has` is set
  std::atomic<bool> has{false};
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_FAILURERECORD_H
