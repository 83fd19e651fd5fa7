// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Meeting.h"

#include <algorithm>

namespace shardc::rt {

namespace {

/// How long a waiter sleeps before it looks again whether somebody left or gave up.
constexpr std::chrono::milliseconds napLimit(20);
constexpr std::chrono::microseconds awakeLimit(50);

} // namespace

std::string Whereabouts::place() const {
  if (const shardrt_collective *c = collective.load(std::memory_order_relaxed))
    return "in " + describe(*c);
  const shardrt_op *at = op.load(std::memory_order_relaxed);
  if (!at)
    return "not running";
  std::string text = std::string("in ") + (at->name ? at->name : "an unnamed op");
  return at->location && *at->location ? text + " (" + at->location + ")" : text;
}

std::string Whereabouts::str() const {
  bool computes = !collective.load(std::memory_order_relaxed) && op.load(std::memory_order_relaxed);
  return (computes ? "was last seen " : "is ") + place();
}

MeetingWorld::MeetingWorld(uint32_t size, uint32_t cores, Sharing sharing)
    : size(size), sharing(sharing), crowded(cores < size), spin{awakeLimit, cores >= size} {}

std::string MeetingWorld::absent(const Group &group, uint64_t run) {
  for (uint32_t position = 0; position < group.size(); ++position)
    if (position != group.position)
      if (std::string why = whyAbsent(group.members[position], run); !why.empty())
        return why;
  return "";
}

std::vector<uint32_t> MeetingWorld::missing(const MeetingGroup &group) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < group.members.size(); ++i)
    if (group.slots[i].phase.load(std::memory_order_acquire) < group.phase)
      out.push_back(group.members[i]);
  return out;
}

std::vector<uint32_t> MeetingWorld::waitedFor(const MeetingGroup &group) {
  std::vector<uint32_t> out = missing(group);
  if (!out.empty())
    return out;
  uint32_t worker = group.place.worker.load(std::memory_order_acquire);
  // It says that it is at work a moment after it has arrived: until then it may be any of them.
  for (uint32_t position = 0; position < group.size(); ++position)
    if (position != group.position && (position == worker || worker == group.position))
      out.push_back(group.members[position]);
  return out;
}

void MeetingWorld::meet(MeetingGroup &group, const Activity &activity, Clock::time_point deadline,
                        const std::function<void()> &last) {
  MeetingPlace &place = group.place;
  Clock::time_point start = Clock::now();
  group.slots[group.position].phase.store(++group.phase, std::memory_order_release);
  // Must be read before arriving: afterwards the phase may be complete at any moment.
  uint32_t seen = place.complete.load();
  // Every arrival releases this member's slot and acquires those of the members before it; the last
  // one passes all of them on through `complete`.
  if (place.arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == group.members.size()) {
    place.arrivals.store(0, std::memory_order_relaxed);
    place.allArrived = Clock::now();
    place.done = false;
    place.worker.store(group.position, std::memory_order_release);
    if (last)
      last();
    place.complete.advance();
    return;
  }
  Spin awake = spin;
  while (!place.complete.wait(
      seen, awake, std::min<std::chrono::nanoseconds>(napLimit, deadline - Clock::now()))) {
    awake = {};
    if (givenUp())
      failAborted(group, activity);
    std::vector<uint32_t> absent = missing(group);
    for (uint32_t other : absent) {
      std::string why = whyAbsent(other, activity.run);
      if (why.empty())
        continue;
      // It may have come, and left, since this rank looked.
      std::vector<uint32_t> still = missing(group);
      if (std::find(still.begin(), still.end(), other) != still.end())
        fail(group, activity, SHARDRT_ABORTED, why);
    }
    if (Clock::now() < deadline)
      continue;
    if (absent.empty()) {
      if (!mayStopAtWork())
        continue;
      absent = waitedFor(group);
      if (place.complete.load() != seen)
        continue;
    }
    std::vector<uint32_t> present;
    for (uint32_t member : group.members)
      if (std::find(absent.begin(), absent.end(), member) == absent.end())
        present.push_back(member);
    fail(group, activity, SHARDRT_TIMEOUT,
         "it did not complete within " +
             secondsText(std::chrono::duration<double>(deadline - start).count()) + ": missing " +
             rankList(absent) + ", arrived " + rankList(present) + " (" + whereAre(absent) + ")");
  }
}

} // namespace shardc::rt
