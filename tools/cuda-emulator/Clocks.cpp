// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Clocks.h"

#include <algorithm>

namespace shardc::emulator {
namespace {

void normalize(std::vector<ByteInterval> &intervals) {
  std::erase_if(intervals, [](const ByteInterval &i) { return i.begin >= i.end; });
  std::sort(intervals.begin(), intervals.end(),
            [](const ByteInterval &a, const ByteInterval &b) { return a.begin < b.begin; });
  size_t kept = 0;
  for (const ByteInterval &interval : intervals) {
    if (kept && interval.begin <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
    else
      intervals[kept++] = interval;
  }
  intervals.resize(kept);
}

std::vector<ByteInterval> without(const std::vector<ByteInterval> &intervals,
                                  const ByteInterval &bytes) {
  std::vector<ByteInterval> out;
  for (const ByteInterval &own : intervals)
    for (const ByteInterval &part : {ByteInterval{own.begin, std::min(own.end, bytes.begin)},
                                     ByteInterval{std::max(own.begin, bytes.end), own.end}})
      if (part.begin < part.end)
        out.push_back(part);
  return out;
}

} // namespace

void LaneClock::set(uint32_t lane, uint64_t time) {
  if (lane >= times.size())
    times.resize(lane + 1);
  times[lane] = time;
}

void LaneClock::join(const LaneClock &other) {
  if (other.times.size() > times.size())
    times.resize(other.times.size());
  for (size_t i = 0; i < other.times.size(); ++i)
    times[i] = std::max(times[i], other.times[i]);
}

void LaneClock::meet(const LaneClock &other) {
  if (times.size() > other.times.size())
    times.resize(other.times.size());
  for (size_t i = 0; i < times.size(); ++i)
    times[i] = std::min(times[i], other.times[i]);
}

bool LaneClock::includes(const LaneClock &other) const {
  for (size_t i = 0; i < other.times.size(); ++i)
    if (of(uint32_t(i)) < other.times[i])
      return false;
  return true;
}

void Effects::normalize() {
  emulator::normalize(reads);
  emulator::normalize(writes);
}

std::optional<ByteInterval> common(const std::vector<ByteInterval> &a,
                                   const std::vector<ByteInterval> &b) {
  // The list with fewer intervals is walked; in the other one they are looked for.
  const std::vector<ByteInterval> &few = a.size() <= b.size() ? a : b;
  const std::vector<ByteInterval> &many = a.size() <= b.size() ? b : a;
  for (const ByteInterval &interval : few) {
    auto at = std::partition_point(many.begin(), many.end(), [&](const ByteInterval &other) {
      return other.end <= interval.begin;
    });
    if (at != many.end() && at->begin < interval.end)
      return ByteInterval{std::max(at->begin, interval.begin), std::min(at->end, interval.end)};
  }
  return std::nullopt;
}

std::optional<Conflict> HappensBefore::add(OperationRecord record) {
  std::optional<Conflict> found;
  for (const OperationRecord &other : records) {
    bool ordered = record.clock.of(other.lane) >= other.number() ||
                   other.clock.of(record.lane) >= record.number();
    if (ordered)
      continue;
    if (auto bytes = common(record.effects.writes, other.effects.writes))
      found = Conflict{other.name, true, true, *bytes};
    else if (auto bytes = common(record.effects.writes, other.effects.reads))
      found = Conflict{other.name, true, false, *bytes};
    else if (auto bytes = common(record.effects.reads, other.effects.writes))
      found = Conflict{other.name, false, true, *bytes};
    if (found)
      break;
  }
  if (!record.effects.reads.empty() || !record.effects.writes.empty())
    records.push_back(std::move(record));
  return found;
}

void HappensBefore::forget(const std::vector<LaneClock> &known) {
  records.remove_if(
      [&](const OperationRecord &r) { return known[r.device].of(r.lane) >= r.number(); });
}

void HappensBefore::forget(const ByteInterval &bytes) {
  for (OperationRecord &record : records)
    for (auto *intervals : {&record.effects.reads, &record.effects.writes})
      *intervals = without(*intervals, bytes);
  records.remove_if(
      [](const OperationRecord &r) { return r.effects.reads.empty() && r.effects.writes.empty(); });
}

std::optional<Conflict> HappensBefore::release(const ByteInterval &bytes, const LaneClock &known,
                                               int device) {
  std::optional<Conflict> found;
  for (const OperationRecord &other : records) {
    if (other.device == device || known.of(other.lane) >= other.number())
      continue;
    if (auto written = common({bytes}, other.effects.writes))
      found = Conflict{other.name, true, true, *written};
    else if (auto read = common({bytes}, other.effects.reads))
      found = Conflict{other.name, true, false, *read};
    if (found)
      break;
  }
  forget(bytes);
  return found;
}

} // namespace shardc::emulator
