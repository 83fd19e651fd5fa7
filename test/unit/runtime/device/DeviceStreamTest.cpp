// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives that a communicator puts on streams of the device.
#include "test/unit/runtime/device/FakeModels.h"

using namespace shardc::rt;
using test::DeviceRun, test::FakeDevice, test::FakeModels, test::FakeResult, test::iota;

namespace {

/// One rank's end of a world of threads whose collectives are work on a stream of the fake device.
class StreamEnd final : public Communicator, public StreamTransport {
public:
  explicit StreamEnd(std::unique_ptr<Communicator> inner) : inner(std::move(inner)) {}

  uint32_t worldSize() const override { return inner->worldSize(); }
  uint32_t rank() const override { return inner->rank(); }
  Group &group(std::span<const uint32_t> members) override { return inner->group(members); }
  std::vector<std::string> exchange(const Topic &topic, std::string_view mine,
                                    Clock::time_point deadline) override {
    return inner->exchange(topic, mine, deadline);
  }
  HostTransport *hostTransport() override { return inner->hostTransport(); }
  StreamTransport *streamTransport() override { return this; }
  bool givenUp() const override { return inner->givenUp(); }
  void abort(shardrt_status status, const std::string &reason) noexcept override {
    inner->abort(status, reason);
  }
  void refuse(uint64_t run, const std::string &reason) noexcept override {
    inner->refuse(run, reason);
  }
  void leave() noexcept override { inner->leave(); }
  void notePosition(const shardrt_op *op) noexcept override { inner->notePosition(op); }

  std::string_view device() const override { return "cuda"; }
  bool takes(const shardrt_collective &collective, uint32_t) const override {
    return !refused || refused != std::string(collective.name);
  }
  void enqueue(const CollectiveCall &call, void *stream, Clock::time_point) override {
    ++enqueued;
    fake->push(stream, [this, copy = call] {
      try {
        inner->hostTransport()->run(copy, deadlineAfter(timeout));
      } catch (const Failure &failure) {
        if (!problem)
          problem.emplace(failure);
      }
    });
  }
  void poll(const CollectiveCall &oldest, Clock::time_point) override {
    polled.insert(oldest.collective->name);
    runs.insert(oldest.run);
    if (problem)
      throw Failure(*problem);
  }

  const std::unique_ptr<Communicator> inner;
  FakeDevice *fake = nullptr;
  const char *refused = nullptr; ///< the name of a collective that it does not take
  double timeout = 20;
  std::optional<Failure> problem;
  std::atomic<int> enqueued{0};
  std::set<std::string> polled;
  std::set<uint64_t> runs;
};

struct StreamModels {
  explicit StreamModels(int32_t world, const std::function<void(shardrt_config &)> &adjust = {},
                        const char *refused = nullptr) {
    std::vector<std::unique_ptr<Communicator>> given;
    for (auto &end : makeLocalWorld(uint32_t(world))) {
      auto made = std::make_unique<StreamEnd>(std::move(end));
      made->refused = refused;
      ends.push_back(made.get());
      given.push_back(std::move(made));
    }
    models.emplace(world, adjust, std::move(given));
    for (size_t rank = 0; rank < ends.size(); ++rank)
      ends[rank]->fake = models->devices[rank];
  }
  std::vector<StreamEnd *> ends;
  std::optional<FakeModels> models;
};

} // namespace

TEST_F(DeviceRun, CollectivesOnStreamsArePartsOfGraphs) {
  for (int32_t world : {2, 4}) {
    FakeDevice::graphLaunches = 0;
    StreamModels ranks(world);
    for (int step = 0; step < 7; ++step)
      ranks.models->expectRight(ranks.models->run(iota(6, float(step))), iota(6, float(step)));
    EXPECT_EQ(FakeDevice::graphLaunches, 5 * world);
    for (StreamEnd *end : ranks.ends) {
      EXPECT_EQ(end->enqueued, 2 * 4) << "two steps, and two captures";
      EXPECT_EQ(end->polled, (std::set<std::string>{"all_reduce.0", "all_reduce.1"}));
      EXPECT_EQ(*end->runs.rbegin(), 7u);
    }
  }
}

TEST_F(DeviceRun, WhatATransportDoesNotTakeGoesThroughTheHost) {
  for (const char *refused : {"all_reduce.0", "all_reduce.1"}) {
    StreamModels ranks(2, {}, refused);
    for (int step = 0; step < 5; ++step)
      ranks.models->expectRight(ranks.models->run(iota(6, float(step))), iota(6, float(step)));
    EXPECT_EQ(ranks.ends[0]->enqueued, 5);
  }
  EXPECT_EQ(FakeDevice::graphLaunches, 0);
}

TEST_F(DeviceRun, FailuresBesideStreams) {
  for (int steps : {0, 5}) {
    StreamModels ranks(2);
    for (int step = 0; step < steps; ++step)
      ranks.models->expectRight(ranks.models->run(iota(3)), iota(3));
    std::vector<FakeResult> results = ranks.models->run({{1, 2, 3}, {1, -2, 3}});
    EXPECT_EQ(results[1].status, SHARDRT_PROGRAM_ERROR);
    EXPECT_EQ(results[1].message, "embed (model.py:3): index is out of range");
  }
}

TEST_F(DeviceRun, ARankThatIsMissingOnAStream) {
  for (int steps : {0, 5}) {
    StreamModels ranks(2);
    ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
    for (int step = 0; step < steps; ++step)
      ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
    ranks.ends[0]->timeout = 0.2;
    int64_t n = 4;
    std::vector<float> x = iota(4);
    FakeResult alone = ranks.models->runRank(0, shardrt::view<const float>(x, {&n, 1}), iota(4));
    EXPECT_EQ(alone.status, SHARDRT_TIMEOUT);
    EXPECT_NE(alone.message.find("all_reduce.0 (y (model.py:5))"), std::string::npos)
        << alone.message;
  }
}

TEST_F(DeviceRun, LongProgramsDoNotFillTheQueue) {
  // A full queue would make a launch wait behind a collective that may never come.
  test::fake::repetitions = 3000;
  FakeDevice::longestQueue = 0;
  {
    StreamModels ranks(2);
    ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
  }
  test::fake::repetitions = 1;
  EXPECT_LT(FakeDevice::longestQueue, 1000u);
}

TEST_F(DeviceRun, TimesOnStreams) {
  StreamModels ranks(2, [](shardrt_config &config) { config.flags = SHARDRT_RECORD_EVENTS; });
  for (int step = 0; step < 2; ++step)
    ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
  std::map<std::pair<int32_t, std::string>, int> seen;
  for (const shardrt_event &event : ranks.models->models[1]->eventLog().sorted()) {
    ++seen[{event.stream, event.name}];
    EXPECT_GT(event.duration_us, 0);
    if (event.stream == SHARDRT_STREAM_COMM) {
      EXPECT_EQ(event.bytes, event.name == std::string("all_reduce.0") ? 16 : 4);
    }
  }
  const std::map<std::pair<int32_t, std::string>, int> wanted = {
      {{SHARDRT_STREAM_COMPUTE, "twice"}, 2},     {{SHARDRT_STREAM_COMPUTE, "sum"}, 2},
      {{SHARDRT_STREAM_COMM, "all_reduce.0"}, 2}, {{SHARDRT_STREAM_COMM, "all_reduce.1"}, 2},
      {{SHARDRT_STREAM_WAIT, "all_reduce.0"}, 2}, {{SHARDRT_STREAM_WAIT, "all_reduce.1"}, 2}};
  EXPECT_EQ(seen, wanted);
}
