// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The communicator of ranks that are threads of one process: a collective is two meetings of its
// members, and between them every member does its part directly on the others' memory.
#include "runtime/comm/LocalWorld.h"
#include "runtime/comm/Share.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shardc::rt {

namespace {

/// Copying this much takes about as long as waking another thread does.
constexpr int64_t bytesWorthSharing = 64 << 10;

constexpr const char *collectivePurpose = "a collective";

class LocalGroup : public Group {
public:
  LocalGroup(const std::vector<uint32_t> &members, uint32_t position, LocalChannel &channel)
      : Group(members, position), channel(channel), calls(members.size()) {}

  LocalChannel &channel;
  uint64_t phase = 0;
  std::vector<const CollectiveCall *> calls; ///< of all members; reused from call to call
};

class LocalCommunicator : public Communicator, private HostTransport {
public:
  LocalCommunicator(std::shared_ptr<LocalWorld> world, uint32_t self)
      : world(std::move(world)), self(self) {
    std::vector<uint32_t> all(this->world->size());
    std::iota(all.begin(), all.end(), 0u);
    everybody = static_cast<LocalGroup *>(&group(all));
  }
  ~LocalCommunicator() override { world->leave(self); }

  uint32_t worldSize() const override { return world->size(); }
  uint32_t rank() const override { return self; }

  Group &group(std::span<const uint32_t> members) override {
    std::vector<uint32_t> key(members.begin(), members.end());
    std::unique_ptr<LocalGroup> &entry = groups[key];
    if (!entry) {
      auto position = uint32_t(std::find(key.begin(), key.end(), self) - key.begin());
      entry = std::make_unique<LocalGroup>(key, position, world->channel(key));
    }
    return *entry;
  }

  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    const Activity activity{topic.name, nullptr, topic.run};
    std::vector<std::string> all(world->size());
    arrive(*everybody, topic.name, &mine, activity, deadline);
    finish(*everybody, activity, deadline, [&] {
      for (size_t r = 0; r < all.size(); ++r)
        all[r] = *static_cast<const std::string_view *>(everybody->channel.slots[r].payload);
      return std::string();
    });
    return all;
  }

  HostTransport *hostTransport() override { return this; }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    world->abort(self, status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    world->refuse(self, run, reason);
  }
  void leave() noexcept override { world->leave(self); }
  void notePosition(const shardrt_op *op) noexcept override { world->notePosition(self, op); }

private:
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override {
    auto &group = static_cast<LocalGroup &>(*call.group);
    if (group.size() == 1) {
      const CollectiveCall *alone = &call;
      performShare({&alone, 1}, 0);
      return Clock::now();
    }
    world->noteCollective(self, call.collective);
    struct Leave {
      LocalCommunicator &c;
      ~Leave() { c.world->noteCollective(c.self, nullptr); }
    } leave{*this};
    const Activity activity{"", call.collective, call.run};
    arrive(group, collectivePurpose, &call, activity, deadline,
           [&] { doAllParts(group, activity); });
    Clock::time_point arrived = group.channel.allArrived;
    if (!group.channel.done)
      finish(group, activity, deadline, [&] {
        std::string problem = collectCalls(group);
        if (problem.empty() && hasExchange(call))
          problem = compareWith(group, group.position);
        if (problem.empty())
          performShare(group.calls, group.position);
        return problem;
      });
    return arrived;
  }

  /// While it lives, this rank may read and write the others' operands. Throws if the world was
  /// given up.
  struct Touching {
    Touching(LocalCommunicator &self, LocalGroup &group, const Activity &activity) : self(self) {
      if (!self.world->beginTouching(self.self))
        self.world->failAborted(group.channel, self.self, activity);
    }
    ~Touching() { self.world->endTouching(self.self); }
    LocalCommunicator &self;
  };

  /// First meeting: everybody's payload can be seen by everybody after it.
  void arrive(LocalGroup &group, const char *purpose, const void *payload, const Activity &activity,
              Clock::time_point deadline, const std::function<void()> &last = {}) {
    LocalChannel::Slot &slot = group.channel.slots[group.position];
    slot.purpose = purpose;
    slot.payload = payload;
    world->meet(group.channel, group.position, ++group.phase, activity, deadline, last);
  }

  /// The last member to arrive is awake and has a core. It does the parts of all where waking the
  /// others for theirs, and waiting for them again, would take longer: little data, or more ranks
  /// than cores. Where members disagree it leaves that to the second meeting, in which all find
  /// out.
  void doAllParts(LocalGroup &group, const Activity &activity) {
    Touching touching(*this, group, activity);
    if (checkPurposes(group).empty() && collectCalls(group).empty() &&
        lastDoesAll(*group.calls[0]) && allCountsFit(group)) {
      for (uint32_t member = 0; member < group.size(); ++member)
        performShare(group.calls, member);
      group.channel.done = true;
    }
  }

  bool lastDoesAll(const CollectiveCall &call) const {
    if (world->sharing != Sharing::Automatic)
      return world->sharing == Sharing::Last;
    return world->crowded() || call.fullBytes() <= bytesWorthSharing;
  }

  /// Does this member's part, which returns what is wrong if anything, and meets the others again:
  /// nobody needs the payloads, or what they point to, after that.
  template <typename Part>
  void finish(LocalGroup &group, const Activity &activity, Clock::time_point deadline, Part part) {
    std::string problem;
    {
      Touching touching(*this, group, activity);
      problem = checkPurposes(group);
      if (problem.empty())
        problem = part();
    }
    if (!problem.empty())
      world->fail(group.channel, self, activity, SHARDRT_MISMATCH, problem);
    world->meet(group.channel, group.position, ++group.phase, activity, deadline);
  }

  /// Empty if all members came for the same purpose.
  std::string checkPurposes(const LocalGroup &group) const {
    const LocalChannel &channel = group.channel;
    for (size_t i = 1; i < channel.slots.size(); ++i)
      if (std::strcmp(channel.slots[i].purpose, channel.slots[0].purpose) != 0)
        return "rank " + std::to_string(channel.members[0]) + " is in " + channel.slots[0].purpose +
               ", rank " + std::to_string(channel.members[i]) + " in " + channel.slots[i].purpose;
    return "";
  }

  static std::string callText(const LocalGroup &group, size_t member) {
    return "rank " + std::to_string(group.members[member]) + " is in " +
           describe(*group.calls[member]->collective);
  }
  /// Fills group.calls; returns how the members' calls differ, if they do.
  std::string collectCalls(LocalGroup &group) const {
    for (size_t i = 0; i < group.calls.size(); ++i)
      group.calls[i] = static_cast<const CollectiveCall *>(group.channel.slots[i].payload);
    return compareWith(group, 0);
  }
  /// How a member's call differs from those of others, if it does.
  static std::string compareWith(const LocalGroup &group, size_t member) {
    for (size_t i = 0; i < group.calls.size(); ++i)
      if (i != member)
        if (std::string how = difference(*group.calls[member], *group.calls[i]); !how.empty())
          return "ranks disagree: " + callText(group, member) + ", " + callText(group, i) + " (" +
                 how + ")";
    return "";
  }
  /// In an exchange each pair of members has counts of its own. A member compares those that it
  /// reads by; who does the parts of all compares all.
  static bool allCountsFit(const LocalGroup &group) {
    for (size_t member = 1; hasExchange(*group.calls[0]) && member < group.calls.size(); ++member)
      if (!compareWith(group, member).empty())
        return false;
    return true;
  }

  std::shared_ptr<LocalWorld> world;
  uint32_t self;
  std::map<std::vector<uint32_t>, std::unique_ptr<LocalGroup>> groups;
  LocalGroup *everybody;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> makeLocalWorld(uint32_t worldSize, Sharing sharing) {
  auto world = std::make_shared<LocalWorld>(worldSize, sharing);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (uint32_t rank = 0; rank < worldSize; ++rank)
    ends.push_back(std::make_unique<LocalCommunicator>(world, rank));
  return ends;
}

} // namespace shardc::rt
