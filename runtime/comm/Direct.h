// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between ranks that reach each other's memory, threads or processes: two meetings of
// the members, and between them every member does its part directly on the others' operands.
#ifndef SHARDC_RUNTIME_COMM_DIRECT_H
#define SHARDC_RUNTIME_COMM_DIRECT_H

#include "runtime/comm/Meeting.h"

#include <map>

namespace shardc::rt {

/// What a communicator derives from that knows how members see each other's calls.
class DirectTransport : public HostTransport {
protected:
  /// What everybody has come for who runs a collective (purposeOf).
  static constexpr std::string_view collectivePurpose = "a collective";

  DirectTransport(MeetingWorld &world, uint32_t self) : world(world), self(self) {}

  /// This rank's end of these members; made once.
  MeetingGroup &groupOf(std::span<const uint32_t> members);

  /// Runs a call of a group of several members; `offer` is what this rank's slot shows meanwhile.
  Clock::time_point runTogether(const CollectiveCall &call, uint64_t offer,
                                Clock::time_point deadline);
  /// Comes together for something else, and calls `part` while all members' offers can be seen.
  /// Throws if somebody has come for another purpose.
  void comeTogether(MeetingGroup &group, uint64_t offer, const Activity &activity,
                    Clock::time_point deadline, const std::function<void()> &part);

  /// Where these members meet; the same place on all of them.
  virtual std::unique_ptr<MeetingGroup> makeGroup(std::vector<uint32_t> members,
                                                  uint32_t position) = 0;
  /// The following are called between two meetings, when offers can be read; this one first. Throws
  /// Failure, having given the world up, if it cannot look at them.
  virtual void look(MeetingGroup &group, const Activity &activity, Clock::time_point deadline) {}
  /// What a member came for: collectivePurpose, or the name of a topic.
  virtual std::string_view purposeOf(const MeetingGroup &group, size_t member) = 0;
  /// Fills group.calls with the members' calls of a collective, as this rank can use them: their
  /// operands at addresses of its own. Throws Failure, having given the world up, if it cannot.
  virtual void collect(MeetingGroup &group, const CollectiveCall &mine, const Activity &activity,
                       Clock::time_point deadline) = 0;
  /// Whether this rank can write the outputs of all of group.calls, and not only those that
  /// performShare writes for its own part.
  virtual bool reachesOutputs(const MeetingGroup &group) { return true; }

  /// Copying this much takes about as long as waking another thread does.
  static constexpr int64_t bytesWorthSharing = 64 << 10;
  /// Whether the last to arrive should do the parts of all.
  bool lastDoesAll(const CollectiveCall &call) const;

  MeetingWorld &world;
  const uint32_t self;

private:
  struct Touching;

  void doAllParts(MeetingGroup &group, const CollectiveCall &call, const Activity &activity,
                  Clock::time_point deadline);
  template <typename Part>
  void finish(MeetingGroup &group, const Activity &activity, Clock::time_point deadline, Part part);
  std::string checkPurposes(const MeetingGroup &group);

  std::map<std::vector<uint32_t>, std::unique_ptr<MeetingGroup>> groups;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_DIRECT_H
