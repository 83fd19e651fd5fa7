// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/comm/Direct.h"

#include "runtime/comm/Share.h"

#include <algorithm>

namespace shardc::rt {

namespace {

std::string callText(const MeetingGroup &group, size_t member) {
  return "rank " + std::to_string(group.members[member]) + " is in " +
         describe(*group.calls[member]->collective);
}

/// How a member's call differs from those of others, if it does.
std::string compareWith(const MeetingGroup &group, size_t member) {
  for (size_t i = 0; i < group.calls.size(); ++i)
    if (i != member)
      if (std::string how = difference(*group.calls[member], *group.calls[i]); !how.empty())
        return "ranks disagree: " + callText(group, member) + ", " + callText(group, i) + " (" +
               how + ")";
  return "";
}

/// In an exchange each pair of members has counts of its own. A member compares those that it
/// reads by; who does the parts of all compares all.
bool allCountsFit(const MeetingGroup &group) {
  for (size_t member = 1; hasExchange(*group.calls[0]) && member < group.calls.size(); ++member)
    if (!compareWith(group, member).empty())
      return false;
  return true;
}

} // namespace

/// While it lives, this rank may read and write the others' operands. Throws if the world was given
/// up.
struct DirectTransport::Touching {
  Touching(DirectTransport &self, const MeetingGroup &group, const Activity &activity)
      : self(self) {
    if (!self.world.beginTouching(self.self))
      self.world.failAborted(group, activity);
  }
  ~Touching() { self.world.endTouching(self.self); }
  DirectTransport &self;
};

MeetingGroup &DirectTransport::groupOf(std::span<const uint32_t> members) {
  std::vector<uint32_t> key(members.begin(), members.end());
  std::unique_ptr<MeetingGroup> &entry = groups[key];
  if (!entry) {
    auto position = uint32_t(std::find(key.begin(), key.end(), self) - key.begin());
    entry = makeGroup(key, position);
  }
  return *entry;
}

Clock::time_point DirectTransport::runTogether(const CollectiveCall &call, uint64_t offer,
                                               Clock::time_point deadline) {
  auto &group = static_cast<MeetingGroup &>(*call.group);
  const Activity activity{"", call.collective, call.run};
  group.slots[group.position].offer = offer;
  // First meeting: everybody's call can be seen by everybody after it.
  auto last = [&] { doAllParts(group, call, activity, deadline); };
  world.meet(group, activity, deadline, std::ref(last)); // a reference: no allocation
  Clock::time_point arrived = group.place.allArrived;
  if (!group.place.done)
    finish(group, activity, deadline, [&] {
      collect(group, call, activity, deadline);
      std::string problem = compareWith(group, 0);
      if (problem.empty() && hasExchange(call))
        problem = compareWith(group, group.position);
      if (problem.empty())
        performShare(group.calls, group.position);
      return problem;
    });
  return arrived;
}

void DirectTransport::comeTogether(MeetingGroup &group, uint64_t offer, const Activity &activity,
                                   Clock::time_point deadline, const std::function<void()> &part) {
  group.slots[group.position].offer = offer;
  world.meet(group, activity, deadline);
  finish(group, activity, deadline, [&] {
    part();
    return std::string();
  });
}

/// The last member to arrive is awake and has a core. It does the parts of all where waking the
/// others for theirs, and waiting for them again, would take longer: little data, or more ranks
/// than cores. Where members disagree it leaves that to the second meeting, in which all find out.
void DirectTransport::doAllParts(MeetingGroup &group, const CollectiveCall &call,
                                 const Activity &activity, Clock::time_point deadline) {
  Touching touching(*this, group, activity);
  look(group, activity, deadline);
  if (!checkPurposes(group).empty())
    return;
  collect(group, call, activity, deadline);
  if (compareWith(group, 0).empty() && lastDoesAll(*group.calls[0]) && reachesOutputs(group) &&
      allCountsFit(group)) {
    for (uint32_t member = 0; member < group.size(); ++member)
      performShare(group.calls, member);
    group.place.done = true;
  }
}

bool DirectTransport::lastDoesAll(const CollectiveCall &call) const {
  if (world.sharing != Sharing::Automatic)
    return world.sharing == Sharing::Last;
  return world.crowded || call.fullBytes() <= bytesWorthSharing;
}

/// Does this member's part, which returns what is wrong if anything, and meets the others again:
/// nobody needs the offers, or what they point to, after that.
template <typename Part>
void DirectTransport::finish(MeetingGroup &group, const Activity &activity,
                             Clock::time_point deadline, Part part) {
  std::string problem;
  {
    Touching touching(*this, group, activity);
    look(group, activity, deadline);
    problem = checkPurposes(group);
    if (problem.empty())
      problem = part();
  }
  if (!problem.empty())
    world.fail(group, activity, SHARDRT_MISMATCH, problem);
  world.meet(group, activity, deadline);
}

/// Empty if all members came for the same purpose.
std::string DirectTransport::checkPurposes(const MeetingGroup &group) {
  std::string_view first = purposeOf(group, 0);
  for (size_t i = 1; i < group.members.size(); ++i)
    if (std::string_view other = purposeOf(group, i); other != first)
      return "rank " + std::to_string(group.members[0]) + " is in " + std::string(first) +
             ", rank " + std::to_string(group.members[i]) + " in " + std::string(other);
  return "";
}

} // namespace shardc::rt
