// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Timed events of one rank, kept for traces and profiles.
#ifndef SHARDC_RUNTIME_SUPPORT_EVENTS_H
#define SHARDC_RUNTIME_SUPPORT_EVENTS_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/include/shardrt.h"
#include "runtime/support/Futex.h"

#include <array>
#include <span>
#include <vector>

namespace shardc::rt {

/// Each stream is written by one thread at a time; reading is allowed when no run is active.
class EventLog {
public:
  EventLog(bool enabled, int32_t rank) : enabled(enabled), rank(rank) {}

  const bool enabled;
  const int32_t rank;

  void add(int32_t stream, const char *name, const char *location, Clock::time_point start,
           Clock::time_point end, int64_t bytes) {
    streams[size_t(stream)].push_back({name ? name : "", location ? location : "", rank, stream,
                                       microseconds(start), microseconds(end) - microseconds(start),
                                       bytes});
  }
  /// A call of an entry begins.
  void addRun(const shardrt_entry &entry, Clock::time_point begin) {
    runs.push_back({&entry, microseconds(begin)});
  }
  void clear() {
    runs.clear();
    for (auto &stream : streams)
      stream.clear();
  }
  struct Run {
    const shardrt_entry *entry;
    double beginUs;
  };
  std::span<const Run> calls() const { return runs; }
  /// All events by start time.
  std::vector<shardrt_event> sorted() const;

private:
  static double microseconds(Clock::time_point t) {
    return std::chrono::duration<double, std::micro>(t.time_since_epoch()).count();
  }
  std::array<std::vector<shardrt_event>, 3> streams;
  std::vector<Run> runs;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_SUPPORT_EVENTS_H
