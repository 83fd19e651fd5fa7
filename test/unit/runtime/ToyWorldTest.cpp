// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator that nobody else knows of, in both forms: one moves data in host memory, the other
// enqueues on streams of a toy device.
#include "test/unit/runtime/ToyWorld.h"
#include "runtime/comm/Share.h"
#include "test/unit/runtime/Ranks.h"

#include <numeric>

using namespace shardc::rt;
using test::ToyFailure, test::ToyStream, test::ToyWorld;

namespace {

class ToyCommunicator : public Communicator, protected HostTransport {
public:
  ToyCommunicator(std::shared_ptr<ToyWorld> world, uint32_t self)
      : world(std::move(world)), self(self) {}
  ~ToyCommunicator() override { world->leave(self); }

  uint32_t worldSize() const override { return world->size(); }
  uint32_t rank() const override { return self; }
  Group &group(std::span<const uint32_t> members) override {
    auto position = uint32_t(std::find(members.begin(), members.end(), self) - members.begin());
    groups.push_back(
        std::make_unique<Group>(std::vector<uint32_t>(members.begin(), members.end()), position));
    return *groups.back();
  }
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    std::vector<std::string> all;
    std::vector<uint32_t> everybody(worldSize());
    std::iota(everybody.begin(), everybody.end(), 0u);
    std::pair<std::string_view, std::vector<std::string> *> payload(mine, &all);
    raise(topic.name,
          world->meet({self, everybody, topic.name, &payload, topic.run, left(deadline)},
                      [](const std::vector<const void *> &payloads) {
                        for (const void *to : payloads)
                          for (const void *from : payloads)
                            static_cast<const decltype(payload) *>(to)->second->emplace_back(
                                static_cast<const decltype(payload) *>(from)->first);
                        return std::string();
                      }));
    return all;
  }
  HostTransport *hostTransport() override { return this; }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    world->abort(status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    world->refuse(self, run, reason);
  }
  void leave() noexcept override { world->leave(self); }
  void notePosition(const shardrt_op *op) noexcept override {
    world->notePosition(self, op ? op->name : nullptr, op ? op->location : nullptr);
  }

protected:
  static double left(Clock::time_point deadline) {
    return std::chrono::duration<double>(deadline - Clock::now()).count();
  }
  static void raise(const std::string &where, const std::optional<ToyFailure> &failure) {
    if (failure)
      throw Failure(failure->status, where + ": " + failure->reason);
  }
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override {
    std::string what = describe(*call.collective);
    raise(what, world->meet({self, call.group->members, what, &call, call.run, left(deadline)},
                            performAll));
    return Clock::now();
  }
  static std::string performAll(const std::vector<const void *> &payloads) {
    std::vector<const CollectiveCall *> calls;
    for (const void *payload : payloads)
      calls.push_back(static_cast<const CollectiveCall *>(payload));
    for (const CollectiveCall *one : calls)
      for (const CollectiveCall *other : calls)
        if (std::string how = difference(*one, *other); !how.empty())
          return how;
    for (uint32_t p = 0; p < calls.size(); ++p)
      performShare(calls, p);
    return "";
  }

  std::shared_ptr<ToyWorld> world;
  const uint32_t self;
  std::vector<std::unique_ptr<Group>> groups;
};

/// The same on streams only.
class ToyDeviceCommunicator final : public ToyCommunicator, private StreamTransport {
public:
  using ToyCommunicator::ToyCommunicator;
  HostTransport *hostTransport() override { return nullptr; }
  StreamTransport *streamTransport() override { return this; }

private:
  std::string_view device() const override { return "toy"; }
  void enqueue(const CollectiveCall &call, void *stream, Clock::time_point) override {
    static_cast<ToyStream *>(stream)->push([this, call] {
      if (failed.load())
        return;
      try {
        run(call, Clock::now() + std::chrono::hours(1));
      } catch (const Failure &failure) {
        first.emplace(failure);
        failed = true;
      }
    });
  }
  void poll(const CollectiveCall &oldest, Clock::time_point deadline) override {
    if (failed)
      throw Failure(*first);
    if (Clock::now() >= deadline)
      raise(describe(*oldest.collective), world->expire(self, oldest.group->members));
  }

  std::optional<Failure> first; ///< written before failed
  std::atomic<bool> failed{false};
};

template <typename Toy> test::WorldKind toy(const char *name) {
  return {name, [](uint32_t size) {
            auto world = std::make_shared<ToyWorld>(size);
            std::vector<std::unique_ptr<Communicator>> ends;
            for (uint32_t rank = 0; rank < size; ++rank)
              ends.push_back(std::make_unique<Toy>(world, rank));
            return ends;
          }};
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Toy, toy<ToyCommunicator>("host"));
SHARDRT_CONFORMANCE(ToyDevice, toy<ToyDeviceCommunicator>("stream"));

TEST(ToyDevice, CollectivesAreEnqueuedOneBehindTheOther) {
  // Each sums what the one before left: 1, 3, 9, ...; nobody waits in between.
  constexpr int count = 12;
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_I64, 1, -1, -1}});
  auto outcomes =
      test::runRanks(toy<ToyDeviceCommunicator>("stream").make(3), [&](Communicator &end) {
        int64_t value[] = {1}, extent = 1;
        Group &group = end.group(std::vector<uint32_t>{0, 1, 2});
        shardrt_collective_tensor tensor{value, value, &extent, nullptr, nullptr};
        CollectiveCall call;
        {
          ToyStream stream;
          for (int i = 0; i < count; ++i) {
            ASSERT_EQ(call.assign(sum.desc, group, 1, &tensor), "");
            end.streamTransport()->enqueue(call, &stream, deadlineAfter(60));
          }
          stream.wait([&] { end.streamTransport()->poll(call, deadlineAfter(60)); });
        }
        EXPECT_EQ(value[0], 531441); // 3^12
      });
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}
