// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last collectives of one rank, for the report when something went wrong.
#ifndef SHARDC_RUNTIME_COMM_FLIGHTRECORDER_H
#define SHARDC_RUNTIME_COMM_FLIGHTRECORDER_H

#include "runtime/comm/Call.h"
#include "runtime/flight/FlightRecord.h"
#include "runtime/support/Futex.h"

namespace shardc::rt {

/// Written by whoever executes the rank's collectives (one thread at a time), read when none does.
class FlightRecorder {
public:
  struct Record {
    const shardrt_collective *collective = nullptr;
    const Group *group = nullptr;
    uint64_t sequence = 0; ///< among the collectives of the group, from 1
    uint64_t run = 0;
    int64_t bytes = 0;
    Clock::time_point begin, end;
    shardrt_status status = SHARDRT_OK;
    bool finished = false;
  };

  Record &begin(const CollectiveCall &call);
  /// How many have begun: the number of the next one.
  uint64_t begunCount() const { return count; }
  /// For one whose end is seen later, by its number; it may be forgotten by then.
  void finish(uint64_t number, Clock::time_point end) {
    if (number < count && count - number <= capacity) {
      ring[number % capacity].end = end;
      ring[number % capacity].finished = true;
    }
  }
  /// One line for each record, oldest first; empty if there is none.
  std::string dump() const;
  /// Adds the collectives, by the clock of the host, and the groups.
  void fill(FlightRecord &record) const;

private:
  static constexpr size_t capacity = 64;
  std::array<Record, capacity> ring;
  uint64_t count = 0;
  std::vector<std::pair<const Group *, uint64_t>> begun; ///< collectives begun, by group
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_FLIGHTRECORDER_H
