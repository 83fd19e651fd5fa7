// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The communicator of ranks that are threads of one process: they see each other's calls, and
// operands, where these are.
#include "runtime/comm/Direct.h"
#include "runtime/comm/LocalWorld.h"
#include "runtime/comm/Share.h"

#include <numeric>

namespace shardc::rt {

namespace {

/// What a member shows the others: it lies on its stack until they have read it.
struct Offer {
  std::string_view purpose;
  const void *payload; ///< CollectiveCall, or the std::string_view of an exchange
};
uint64_t shown(const Offer &offer) { return reinterpret_cast<uintptr_t>(&offer); }
const Offer &offerOf(const MeetingGroup &group, size_t member) {
  return *reinterpret_cast<const Offer *>(uintptr_t(group.slots[member].offer));
}

class LocalCommunicator : public Communicator, private DirectTransport {
public:
  LocalCommunicator(std::shared_ptr<LocalWorld> threads, uint32_t self)
      : DirectTransport(*threads, self), threads(std::move(threads)) {
    std::vector<uint32_t> all(world.size);
    std::iota(all.begin(), all.end(), 0u);
    everybody = &groupOf(all);
  }
  ~LocalCommunicator() override { threads->leave(self); }

  uint32_t worldSize() const override { return world.size; }
  uint32_t rank() const override { return self; }
  Group &group(std::span<const uint32_t> members) override { return groupOf(members); }

  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    std::vector<std::string> all(world.size);
    const Offer offer{topic.name, &mine};
    comeTogether(*everybody, shown(offer), {topic.name, nullptr, topic.run}, deadline, [&] {
      for (size_t r = 0; r < all.size(); ++r)
        all[r] = *static_cast<const std::string_view *>(offerOf(*everybody, r).payload);
    });
    return all;
  }

  bool givenUp() const override { return threads->givenUp(); }
  std::string absent(const Group &group, uint64_t run) override {
    return threads->absent(group, run);
  }
  HostTransport *hostTransport() override { return this; }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    threads->abort(self, status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    threads->refuse(self, run, reason);
  }
  void leave() noexcept override { threads->leave(self); }
  void notePosition(const shardrt_op *op) noexcept override {
    threads->whereabouts(self).op.store(op, std::memory_order_relaxed);
  }

private:
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override {
    if (call.group->size() == 1) {
      const CollectiveCall *alone = &call;
      performShare({&alone, 1}, 0);
      return Clock::now();
    }
    const InCollective here(threads->whereabouts(self), *call.collective);
    const Offer offer{collectivePurpose, &call};
    return runTogether(call, shown(offer), deadline);
  }

  std::unique_ptr<MeetingGroup> makeGroup(std::vector<uint32_t> members,
                                          uint32_t position) override {
    return threads->group(std::move(members), position);
  }
  std::string_view purposeOf(const MeetingGroup &group, size_t member) override {
    return offerOf(group, member).purpose;
  }
  void collect(MeetingGroup &group, const CollectiveCall &, const Activity &,
               Clock::time_point) override {
    for (size_t i = 0; i < group.calls.size(); ++i)
      group.calls[i] = static_cast<const CollectiveCall *>(offerOf(group, i).payload);
  }

  const std::shared_ptr<LocalWorld> threads;
  MeetingGroup *everybody;
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
