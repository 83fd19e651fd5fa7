// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The suites of all communicators over shared memory: operands that others cannot reach, operands
// in the memory that they share, and some of both.
#include "runtime/shared/SharedWorld.h"
#include "runtime/support/Memory.h"
#include "test/unit/runtime/Ranks.h"
#include "test/unit/runtime/SharedEnds.h"

#include <cstring>

using namespace shardc::rt;

namespace {

/// An end whose collectives work in the memory that it shares: it copies their operands there and
/// back.
class Placed final : public Communicator, private HostTransport {
public:
  explicit Placed(std::unique_ptr<Communicator> inner) : end(std::move(inner)) {}

  uint32_t worldSize() const override { return end->worldSize(); }
  uint32_t rank() const override { return end->rank(); }
  Group &group(std::span<const uint32_t> members) override { return end->group(members); }
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    return end->exchange(topic, mine, deadline);
  }
  HostTransport *hostTransport() override { return this; }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    end->abort(status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    end->refuse(run, reason);
  }
  void leave() noexcept override { end->leave(); }
  void notePosition(const shardrt_op *op) noexcept override { end->notePosition(op); }
  std::string summary() const override { return end->summary(); }

private:
  Clock::time_point run(const CollectiveCall &call, Clock::time_point deadline) override {
    CollectiveCall placed = call;
    std::vector<Buffer> memory;
    uint32_t position = call.group->position;
    for (CallOperand &o : placed.operands) {
      auto in = size_t(o.inElements(position) * o.elementBytes);
      auto out = size_t(o.outElements(position, *call.collective) * o.elementBytes);
      bool one = o.in == o.out;
      memory.emplace_back(*end->memory(), std::max(in, out), 64, "an operand");
      if (in > 0)
        std::memcpy(memory.back().data(), o.in, in);
      o.in = memory.back().data();
      if (!one)
        memory.emplace_back(*end->memory(), out, 64, "a result");
      o.out = memory.back().data();
    }
    Clock::time_point arrived = end->hostTransport()->run(placed, deadline);
    for (size_t i = 0; i < placed.operands.size(); ++i) {
      const CallOperand &o = placed.operands[i];
      auto out = size_t(o.outElements(position, *call.collective) * o.elementBytes);
      if (out > 0)
        std::memcpy(call.operands[i].out, o.out, out);
    }
    return arrived;
  }

  const std::unique_ptr<Communicator> end;
};

test::WorldKind elsewhere(const char *name, Sharing sharing) {
  return {name, [sharing](uint32_t world) { return test::makeSharedEnds(world, sharing); }};
}

/// Of every `step`th rank.
test::WorldKind placed(const char *name, Sharing sharing, size_t step) {
  return {name, [sharing, step](uint32_t world) {
            test::Ends ends = test::makeSharedEnds(world, sharing);
            for (size_t rank = 0; rank < ends.size(); rank += step)
              ends[rank] = std::make_unique<Placed>(std::move(ends[rank]));
            return ends;
          }};
}

} // namespace

SHARDRT_HOST_CONFORMANCE(Shared, elsewhere("automatic", Sharing::Automatic),
                         elsewhere("each", Sharing::Each), elsewhere("last", Sharing::Last),
                         placed("placed_each", Sharing::Each, 1),
                         placed("placed_last", Sharing::Last, 1),
                         placed("some_placed", Sharing::Automatic, 2));

namespace {

std::vector<uint32_t> allOf(const Communicator &end) {
  std::vector<uint32_t> all(end.worldSize());
  for (uint32_t rank = 0; rank < all.size(); ++rank)
    all[rank] = rank;
  return all;
}

/// In place, of `count` f32 of which each rank gives `value`.
void allReduce(Communicator &end, float *data, int64_t count) {
  test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}}, "all_reduce.7",
                       "layer.3 (model.py:42)");
  shardrt_collective_tensor tensor{data, data, &count, nullptr, nullptr};
  CollectiveCall call;
  ASSERT_EQ(call.assign(sum.desc, end.group(allOf(end)), 1, &tensor), "");
  test::runCollective(end, call, 300);
}

} // namespace

TEST(SharedMemory, CopiesOnlyWhatOthersCannotReach) {
  for (bool reachable : {true, false}) {
    auto outcomes = test::runRanks(test::makeSharedEnds(3, Sharing::Each), [&](Communicator &end) {
      Allocator allocator = reachable ? *end.memory() : Allocator{};
      // Arenas of several sizes, as those of programs with dynamic sizes.
      for (int64_t count : {10, 1000, 200000, 30000000}) {
        Buffer data(allocator, size_t(count) * 4, 4096, "an arena");
        auto *values = reinterpret_cast<float *>(data.data());
        std::fill(values, values + count, float(end.rank() + 1));
        allReduce(end, values, count);
        ASSERT_EQ(std::count(values, values + count, 6.f), count);
      }
      std::string copied = end.summary().substr(end.summary().find("collectives, "));
      int64_t bytes = reachable ? 0 : 2 * 4 * 30201010;
      EXPECT_EQ(copied.substr(0, copied.find(" bytes")), "collectives, " + std::to_string(bytes));
    });
    for (const test::Outcome &outcome : outcomes)
      EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
  }
}

TEST(SharedMemory, MachinesAreNamed) {
  auto world = std::make_shared<test::ThreadControlWorld>(3);
  world->machines = {"a", "b", "a"};
  try {
    test::makeSharedEnds(test::makeThreadControls(world));
    ADD_FAILURE() << "ranks of two machines share memory";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_INVALID_ARGUMENT);
    EXPECT_NE(failure.message.find("rank 0 is on here, rank 1 on here"), std::string::npos)
        << failure.message;
  }
}

TEST(SharedMemory, ADeathIsNoticedAtOnceAndSaysWhoIsMissing) {
  auto world = std::make_shared<test::ThreadControlWorld>(3);
  std::atomic<int> failed{0};
  auto controls = test::makeThreadControls(world);
  auto ends = test::makeSharedEnds(controls);
  auto outcomes = test::runRanks(std::move(ends), [&](Communicator &end) {
    float value = 1;
    allReduce(end, &value, 1);
    if (end.rank() == 1) {
      const shardrt_op op{"linear", "layer.4"};
      end.notePosition(&op);
      // The others say where they are a moment before they wait there.
      for (uint32_t other : {0u, 2u})
        while (controls[1]->ask("", std::chrono::seconds(1))[other]->find("all_reduce.7") ==
               std::string::npos)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      world->kill(1);
      while (failed < 2) // one that was killed does not leave
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    try {
      allReduce(end, &value, 1);
    } catch (const Failure &) {
      ++failed;
      throw;
    }
  });
  for (uint32_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED);
    for (const char *part :
         {"all_reduce.7 (layer.3 (model.py:42)): given up because of rank 1", "rank 1 has died",
          "missing rank 1 (rank 1 was last seen in linear (layer.4)"})
      EXPECT_NE(outcomes[rank].message.find(part), std::string::npos) << outcomes[rank].message;
  }
}

TEST(SharedMemory, NobodyReadsWhatAnOpIsCalledAfterTheRun) {
  auto controls = test::makeThreadControls(2);
  auto ends = test::makeSharedEnds(controls);
  std::atomic<bool> done{false};
  std::atomic<int> asked{0}, garbled{0};
  std::thread asker([&] {
    while (!done) {
      garbled += controls[1]->ask("", std::chrono::seconds(1))[0]->find('?') != std::string::npos;
      ++asked;
    }
  });
  // The texts are long, so that reading them takes as long as possible.
  const std::string good(1 << 16, 'a'), gone(1 << 16, '?');
  std::string name = good;
  for (int i = 0; i < 1500 || asked < 600; ++i) {
    const shardrt_op op{name.c_str(), ""};
    ends[0]->notePosition(&op);
    std::this_thread::yield();
    ends[0]->notePosition(nullptr);
    std::memcpy(name.data(), gone.data(), name.size()); // as if the artifact were unloaded
    std::memcpy(name.data(), good.data(), name.size());
  }
  done = true;
  asker.join();
  EXPECT_EQ(garbled, 0);
}

// All have come, but the last one does the parts of all and does not end.
TEST(SharedMemory, OneThatStopsAtWorkIsNamedAtTheDeadline) {
  auto controls = test::makeThreadControls(3);
  Descriptor meetings = Meetings::make(3);
  std::vector<std::string> messages(3);
  std::atomic<int> begun{0}, ended{0};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      SharedWorld world(controls[rank], {std::vector<SegmentAddress>(3), 3}, mapSegment(meetings),
                        Sharing::Last);
      auto group = world.group({2, 0, 1}, (rank + 1) % 3);
      ++begun;
      if (rank == 1) { // the last to come
        while (begun < 3)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
      }
      try {
        world.meet(*group, {"the test"}, deadlineAfter(2), [&] { // at work until they have failed
          while (ended < 2)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
      } catch (const Failure &failure) {
        EXPECT_EQ(failure.status, SHARDRT_TIMEOUT);
        messages[rank] = failure.message;
      }
      ++ended;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(messages[1], "") << "it is done when it goes on";
  for (uint32_t rank : {0u, 2u})
    EXPECT_NE(messages[rank].find("it did not complete within 2 s: missing rank 1"),
              std::string::npos)
        << messages[rank];
}

// More groups than fit on a page, found by their members in any order, by all at once.
TEST(SharedMemory, ManyGroups) {
  auto outcomes = test::runRanks(test::makeSharedEnds(5), [&](Communicator &end) {
    std::vector<std::vector<uint32_t>> sets;
    std::vector<uint32_t> members = {0, 1, 2, 3, 4};
    do
      sets.push_back(members);
    while (std::next_permutation(members.begin(), members.end()));
    std::vector<Group *> groups(sets.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      size_t at = (i * 7 + end.rank() * 31) % sets.size(); // 120 = 2 2 2 3 5
      groups[at] = &end.group(sets[at]);
    }
    test::Collective gather(SHARDRT_ALL_GATHER, 0, {{SHARDRT_I32, 1, 0, -1}});
    for (size_t i = 0; i < sets.size(); ++i) {
      int64_t count = 5;
      int32_t in = int32_t(end.rank()), out[5];
      shardrt_collective_tensor tensor{&in, out, &count, nullptr, nullptr};
      CollectiveCall call;
      ASSERT_EQ(call.assign(gather.desc, *groups[i], 1, &tensor), "");
      test::runCollective(end, call, 20);
      EXPECT_TRUE(std::equal(out, out + 5, sets[i].begin()));
    }
  });
  for (const test::Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}
