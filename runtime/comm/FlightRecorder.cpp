// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/FlightRecorder.h"

#include "runtime/support/Types.h"

#include <algorithm>
#include <cstdio>

namespace shardc::rt {

FlightRecorder::Record &FlightRecorder::begin(const CollectiveCall &call) {
  Record &record = ring[count++ % capacity];
  record = {call.collective, call.run, call.operandBytes(), Clock::now(), {}, SHARDRT_OK, false};
  return record;
}

std::string FlightRecorder::dump() const {
  std::string text;
  for (uint64_t i = count - std::min<uint64_t>(count, capacity); i < count; ++i) {
    const Record &record = ring[i % capacity];
    using Microseconds = std::chrono::duration<double, std::micro>;
    char line[160];
    std::snprintf(line, sizeof line, "%s#%llu run %llu: %s, %lld bytes, ", i ? "\n  " : "  ",
                  static_cast<unsigned long long>(i), static_cast<unsigned long long>(record.run),
                  kindName(record.collective->kind), static_cast<long long>(record.bytes));
    text += line + describe(*record.collective);
    if (!record.finished)
      text += ": not finished";
    else
      text += ": " + std::to_string(int64_t(Microseconds(record.end - record.begin).count())) +
              " us, " + statusName(record.status);
  }
  return text;
}

} // namespace shardc::rt
