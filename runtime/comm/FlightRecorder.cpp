// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/FlightRecorder.h"

#include "runtime/support/Types.h"

#include <algorithm>
#include <cstdio>

namespace shardc::rt {

FlightRecorder::Record &FlightRecorder::begin(const CollectiveCall &call) {
  Record &record = ring[count++ % capacity];
  auto counter = std::ranges::find(begun, call.group, &std::pair<const Group *, uint64_t>::first);
  if (counter == begun.end())
    counter = begun.insert(counter, {call.group, 0});
  record = {call.collective, call.group, ++counter->second, call.run, call.operandBytes(),
            Clock::now(),    {},         SHARDRT_OK,        false};
  return record;
}

void FlightRecorder::fill(FlightRecord &record) const {
  using std::chrono::duration_cast, std::chrono::microseconds, std::chrono::system_clock;
  auto offset = system_clock::now().time_since_epoch() - Clock::now().time_since_epoch();
  auto onHost = [&](Clock::time_point time) {
    return int64_t(duration_cast<microseconds>(time.time_since_epoch() + offset).count());
  };
  for (auto &[group, number] : begun)
    record.groups.push_back({group->members, number});
  for (uint64_t i = count - std::min<uint64_t>(count, capacity); i < count; ++i) {
    const Record &one = ring[i % capacity];
    const shardrt_collective &collective = *one.collective;
    FlightCollective &out = record.collectives.emplace_back();
    out.name = collective.name ? collective.name : kindName(collective.kind);
    out.location = collective.location ? collective.location : "";
    out.kind = kindName(collective.kind);
    out.members = one.group->members;
    out.sequence = one.sequence;
    out.run = one.run;
    out.bytes = one.bytes;
    out.beginUs = onHost(one.begin);
    if (one.finished) {
      out.endUs = onHost(one.end);
      out.status = statusName(one.status);
    }
  }
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
