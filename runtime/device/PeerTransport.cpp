// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/PeerTransport.h"

#include "runtime/device/Device.h"
#include "runtime/device/FailureWords.h"
#include "runtime/device/PeerPlan.h"
#include "runtime/device/PeerWorld.h"
#include "runtime/device/Tell.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <thread>

namespace shardc::rt {

namespace {

constexpr Topic peersTopic{"the choice of how devices communicate"};
/// For what is on its way when a rank fails, and for others to find out that it did.
Clock::time_point quietTime() { return deadlineAfter(Device::patience.load()); }
/// How long a rank with a kernel that has failed may take to the end of its run, where it says so.
constexpr std::chrono::seconds failureTime(60);

/// A number that no other process has, in any container or on any host.
const std::string &processName() {
  static const std::string name = [] {
    std::random_device random;
    char text[40];
    std::snprintf(text, sizeof text, "%08x%08x%08x%08x", random(), random(), random(), random());
    return std::string(text);
  }();
  return name;
}

/// What a member shows the others of its call while they are in it.
struct PeerOffer {
  const CollectiveCall *call;
  void *ready; ///< event: its operands are computed
  void *done;  ///< event: it has done its part; recorded when the members have met again
  /// In its device's memory: whether its kernels, or others of which it has data, had failed before
  /// its part. Null: it does not say.
  const void *word;
};

/// Between two meetings on the host every member enqueues its part, behind the events of all that
/// say that operands are computed; after the second its stream waits for all parts. The host waits
/// for other hosts, never for a stream, and streams wait for work that is enqueued already: kernels
/// of one device need not run at the same time.
class PeerTransport final : public StreamTransport {
public:
  PeerTransport(Communicator &communicator, const shardrt_device_plugin &plugin, void *device,
                std::shared_ptr<PeerWorld> world)
      : communicator(communicator), plugin(plugin), handle(device), world(std::move(world)),
        self(communicator.rank()), failures(plugin, device) {
    this->world->setDevice(self, &plugin, device);
  }
  ~PeerTransport() override {
    world->waitForTakers(self, quietTime());
    world->forgetEvents(self);
    world->setDevice(self, nullptr, nullptr);
    for (auto &[group, state] : groups)
      for (void *event : {state.ready, state.done})
        if (event)
          plugin.event_destroy(handle, event);
  }

  std::string_view device() const override { return plugin.name; }
  std::string way() const override { return "kernels over peer access"; }
  bool takes(const shardrt_collective &, uint32_t members) const override {
    return members <= SHARDRT_DEVICE_PEER_MEMBERS;
  }
  bool capturable() const override { return false; }
  void giveUp() noexcept override { ended = true; }
  bool isStuck() const override { return othersAreStuck; }

  void watch(const void *word, const uint64_t *copied) override { failures.watch(word, copied); }
  void begin() override { failures.begin(); }
  void joined(const CollectiveCall &call, void *stream) override { failures.passOn(call, stream); }
  /// Two events of its own, waits for those of the others, words, and kernels: of an operand up to
  /// one for every few members, which is what a table of copies has room for.
  size_t pieces(const CollectiveCall &call) const override {
    constexpr size_t copiesOfKernel = 16;
    const size_t n = call.group->size();
    return 2 * (n - 1) + 5 + call.operands.size() * (1 + n / copiesOfKernel);
  }

  void enqueue(const CollectiveCall &call, void *stream, Clock::time_point deadline) override {
    if (call.group->size() == 1)
      return alone(call, stream);
    if (ended || communicator.givenUp())
      explainLate(communicator, call, false);
    PeerGroup &group = groupOf(call);
    world->enter(self);
    bool enqueued = false;
    try {
      const void *word = failures.offer(call, stream);
      on(call,
         [&](char *message) { return plugin.event_record(handle, group.ready, stream, message); });
      std::vector<PeerOffer> offers =
          offersOf(call, {&call, group.ready, group.done, word}, deadline);
      enqueued = true;
      compare(call, offers);
      part(call, offers, stream);
      // Behind the own part: the others' parts of what this rank now has may be of kernels that had
      // failed. They say so at the end of their runs; this rank waits for that at its own end.
      std::vector<const void *> words;
      for (uint32_t q = 0; q < offers.size(); ++q)
        if (q != call.group->position)
          words.push_back(offers[q].word);
      failures.got(call, words, stream);
      on(call,
         [&](char *message) { return plugin.event_record(handle, group.done, stream, message); });
      world->offer(self, call.group->size() - 1);
      tellMembers(communicator, call, "", 1, deadline);
      waitForAll(call, offers, &PeerOffer::done, stream);
      for (uint32_t member : call.group->members)
        if (member != self)
          world->take(member);
    } catch (const Failure &failure) {
      // It is this rank's own, or the world has it already.
      communicator.abort(failure.status == SHARDRT_MISMATCH ? failure.status : SHARDRT_ABORTED,
                         failure.message);
      leaveFailed(group, stream, enqueued);
      throw;
    }
    world->leave(self);
  }

  void poll(const CollectiveCall &oldest, Clock::time_point deadline) override {
    if (ended)
      throw Failure(SHARDRT_ABORTED, describe(*oldest.collective) + ": it was given up");
    if (oldest.group->size() == 1)
      return;
    if (communicator.givenUp())
      explainLate(communicator, oldest, false);
    if (Clock::now() >= deadline)
      explainLate(communicator, oldest, true);
  }

  /// What came of others' kernels that have failed is no result.
  void finish(const CollectiveCall &last) override {
    poll(last, Clock::time_point::max());
    waitForFailed(last);
  }

private:
  struct PeerGroup {
    void *ready = nullptr, *done = nullptr;
  };

  /// Calls the plugin about a collective.
  template <typename Function> void on(const CollectiveCall &call, Function function) {
    char message[SHARDRT_MESSAGE_BYTES];
    message[0] = '\0';
    shardrt_status status = function(message);
    message[SHARDRT_MESSAGE_BYTES - 1] = '\0';
    if (status != SHARDRT_OK)
      throw Failure(status, describe(*call.collective) + ": " +
                                (message[0] ? message : statusName(status)));
  }

  PeerGroup &groupOf(const CollectiveCall &call) {
    PeerGroup &group = groups[call.group];
    for (void **event : {&group.ready, &group.done})
      if (!*event) {
        on(call, [&](char *message) { return plugin.event_create(handle, 0, event, message); });
        world->addEvent(self, *event);
      }
    return group;
  }

  void alone(const CollectiveCall &call, void *stream) {
    const CollectiveCall *calls[] = {&call};
    perform(call, planPeerShare(calls, 0), stream);
  }

  std::vector<PeerOffer> offersOf(const CollectiveCall &call, const PeerOffer &mine,
                                  Clock::time_point deadline) {
    std::string bytes(sizeof mine, '\0');
    std::memcpy(bytes.data(), &mine, sizeof mine);
    std::vector<PeerOffer> offers;
    for (const std::string &text :
         tellMembers(communicator, call, std::move(bytes), sizeof mine, deadline)) {
      offers.emplace_back();
      std::memcpy(&offers.back(), text.data(), sizeof mine);
    }
    return offers;
  }

  /// The calls can be read until the second meeting, to which who finds a difference does not come.
  void compare(const CollectiveCall &call, const std::vector<PeerOffer> &offers) {
    for (uint32_t a : {0u, call.group->position})
      for (uint32_t b = 0; b < offers.size(); ++b)
        if (a != b)
          if (std::string how = difference(*offers[a].call, *offers[b].call); !how.empty())
            throw Failure(SHARDRT_MISMATCH, describe(*call.collective) +
                                                ": ranks disagree: " + whereIs(offers, call, a) +
                                                ", " + whereIs(offers, call, b) + " (" + how + ")");
  }
  static std::string whereIs(const std::vector<PeerOffer> &offers, const CollectiveCall &call,
                             uint32_t member) {
    return "rank " + std::to_string(call.group->members[member]) + " is in " +
           describe(*offers[member].call->collective);
  }

  void part(const CollectiveCall &call, const std::vector<PeerOffer> &offers, void *stream) {
    waitForAll(call, offers, &PeerOffer::ready, stream);
    std::vector<const CollectiveCall *> calls;
    for (const PeerOffer &offer : offers)
      calls.push_back(offer.call);
    perform(call, planPeerShare(calls, call.group->position), stream);
  }

  void waitForAll(const CollectiveCall &call, const std::vector<PeerOffer> &offers,
                  void *PeerOffer::*event, void *stream) {
    for (uint32_t q = 0; q < offers.size(); ++q)
      if (q != call.group->position)
        on(call, [&](char *message) {
          return plugin.stream_wait_event(handle, stream, offers[q].*event, message);
        });
  }

  void perform(const CollectiveCall &call, const PeerPlan &plan, void *stream) {
    if (!plan.copies.empty())
      on(call, [&](char *message) {
        return plugin.peers->copy(handle, plan.copies.data(), plan.copies.size(), stream, message);
      });
    for (const shardrt_peer_reduction &reduction : plan.reductions)
      on(call,
         [&](char *message) { return plugin.peers->reduce(handle, &reduction, stream, message); });
    for (const PeerPlan::Zeros &zeros : plan.zeros)
      on(call, [&](char *message) {
        return plugin.fill(handle, zeros.to, 0, zeros.bytes, stream, message);
      });
  }

  /// Nothing is in flight. A rank that has failed itself says so.
  void waitForFailed(const CollectiveCall &call) {
    if (!failures.onlyOthersFailed())
      return;
    for (Clock::time_point until = Clock::now() + failureTime;
         !communicator.givenUp() && Clock::now() < until;)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (communicator.givenUp())
      explainLate(communicator, call, false);
    std::string text = describe(*call.collective) + ": a kernel of another rank has failed";
    communicator.abort(SHARDRT_ABORTED, text);
    throw Failure(SHARDRT_ABORTED, text);
  }

  /// The world was given up. What this rank has put on others' memory comes to its end before it
  /// leaves, and what others have put on its own before it goes on to release that.
  void leaveFailed(const PeerGroup &group, void *stream, bool enqueued) noexcept {
    const Clock::time_point until = quietTime();
    char message[SHARDRT_MESSAGE_BYTES];
    int32_t done = !enqueued;
    if (!done && plugin.event_record(handle, group.done, stream, message) == SHARDRT_OK)
      while (!done && Clock::now() < until) {
        if (plugin.event_query(handle, group.done, &done, message) != SHARDRT_OK)
          break;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    world->leave(self);
    othersAreStuck = !world->waitForOthers(self, until);
    ended = true;
  }

  Communicator &communicator;
  const shardrt_device_plugin &plugin;
  void *const handle;
  const std::shared_ptr<PeerWorld> world;
  const uint32_t self;
  bool ended = false, othersAreStuck = false;
  FailureWords failures;
  std::map<const Group *, PeerGroup> groups;
};

} // namespace

std::string peersOf(const shardrt_device_plugin &plugin) {
  if (!plugin.peers)
    throw Failure(SHARDRT_INCOMPATIBLE,
                  std::string("the plugin ") + plugin.name + " has no kernels between devices");
  if (plugin.peers->struct_bytes != sizeof *plugin.peers ||
      plugin.peers->version != SHARDRT_DEVICE_PEER_VERSION)
    throw Failure(SHARDRT_INCOMPATIBLE,
                  std::string("the kernels between devices of plugin ") + plugin.name +
                      " have version " + std::to_string(plugin.peers->version) +
                      ", the runtime has version " + std::to_string(SHARDRT_DEVICE_PEER_VERSION));
  return "peer access in process " + processName();
}

std::unique_ptr<StreamTransport> connectPeers(Communicator &communicator,
                                              const shardrt_device_plugin &plugin, void *device,
                                              Clock::time_point deadline, std::string &whyNot) {
  uint64_t number = 0;
  std::shared_ptr<PeerWorld> world;
  if (communicator.rank() == 0)
    world = PeerWorld::make(communicator.worldSize(), number);
  number = std::stoull(communicator.exchange(peersTopic, std::to_string(number), deadline)[0]);
  world = PeerWorld::find(number);
  if (!world)
    throw Failure(SHARDRT_ABORTED, "rank 0 has left");
  auto made = std::make_unique<PeerTransport>(communicator, plugin, device, world);
  communicator.exchange(peersTopic, "", deadline); // all devices are known
  whyNot =
      reasonsOf(communicator.exchange(peersTopic, world->reachAll(communicator.rank()), deadline));
  if (!whyNot.empty())
    return nullptr;
  return made;
}

} // namespace shardc::rt
