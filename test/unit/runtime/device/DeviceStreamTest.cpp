// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives that a communicator puts on streams of the device.
#include "test/unit/runtime/device/FakeModels.h"

#include <algorithm>

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
  size_t pieces(const CollectiveCall &) const override { return parts; }
  bool isStuck() const override { return stuck; }
  void enqueue(const CollectiveCall &call, void *stream, Clock::time_point deadline) override {
    ++enqueued;
    given = deadline;
    for (size_t i = 1; i < parts; ++i)
      fake->push(stream, [] {});
    // Three queries find it begun and not done: two of a look and one of who waits.
    fake->push(
        stream,
        [this, copy = call] {
          try {
            if (isLate && given.load() == never)
              throw Failure(SHARDRT_INTERNAL, "it would wait without a deadline");
            inner->hostTransport()->run(copy, isLate ? given.load() - timeout : given.load());
          } catch (const Failure &failure) {
            if (!problem)
              problem.emplace(failure);
          }
        },
        3);
  }
  void poll(const CollectiveCall &oldest, Clock::time_point deadline) override {
    polled.insert(oldest.collective->name);
    given = deadline;
    deadlines.push_back(deadline != never);
    runs.insert(oldest.run);
    if (problem)
      throw Failure(*problem);
  }

  const std::unique_ptr<Communicator> inner;
  FakeDevice *fake = nullptr;
  const char *refused = nullptr; ///< the name of a collective that it does not take
  static constexpr Clock::time_point never = Clock::time_point::max();
  static constexpr std::chrono::seconds timeout{20}; ///< of the models
  bool isLate = false;                               ///< that much time has passed when it begins
  std::atomic<Clock::time_point> given{never};       ///< the last deadline
  size_t parts = 1;                                  ///< pieces of work of a collective
  std::atomic<bool> stuck{false};                    ///< others have work on this rank's memory
  std::optional<Failure> problem;
  std::atomic<int> enqueued{0};
  std::set<std::string> polled;
  std::vector<bool> deadlines; ///< of each poll: whether it had one
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
    EXPECT_EQ(FakeDevice::graphLaunches, 6 * world);
    for (StreamEnd *end : ranks.ends) {
      EXPECT_EQ(end->enqueued, 2 * 2) << "a step, and a capture";
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
    ranks.ends[0]->isLate = true;
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
  for (bool areProducts : {false, true}) {
    (areProducts ? test::fake::products : test::fake::repetitions) = 3000;
    FakeDevice::longestQueue = 0;
    {
      StreamModels ranks(2);
      ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
    }
    test::fake::repetitions = 1;
    test::fake::products = 0;
    EXPECT_LT(FakeDevice::longestQueue, 1000u);
  }
}

// Of many collectives that nobody waits for, and of many that are waited for at once.
TEST_F(DeviceRun, ManyCollectivesDoNotFillTheQueue) {
  for (bool areStarted : {false, true}) {
    (areStarted ? test::fake::starts : test::fake::exchanges) = 100;
    FakeDevice::longestQueue = 0;
    {
      StreamModels ranks(2);
      for (StreamEnd *end : ranks.ends)
        end->parts = 130; // as of 64 members over peer access
      ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
    }
    test::fake::starts = test::fake::exchanges = 0;
    EXPECT_GT(FakeDevice::longestQueue, 130u);
    EXPECT_LT(FakeDevice::longestQueue, 1000u);
  }
}

// What others have put on a rank's memory may still come: the rank ends and releases nothing.
TEST_F(DeviceRun, WorkOfOthersThatNeverEndsKeepsMemory) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto stuckRank = [] {
    alarm(60); // its signal is none of the exit status that is expected
    static std::string said;
    StreamModels ranks(2, [](shardrt_config &config) {
      config.log = [](void *, int32_t, int32_t, const char *text) {
        if (std::string(text).find("is not released") != std::string::npos)
          said = text;
      };
    });
    ranks.models->expectRight(ranks.models->run(iota(4)), iota(4));
    ranks.ends[0]->stuck = true;
    ranks.ends[1]->abort(SHARDRT_ABORTED, "rank 1 has seen enough");
    const int64_t n = 4;
    std::vector<float> x = iota(4);
    FakeResult result = ranks.models->runRank(0, shardrt::view<const float>(x, {&n, 1}), iota(4));
    const int before = FakeDevice::allocations;
    ranks.models->models[0].reset();
    const bool kept = FakeDevice::allocations == before && FakeDevice::open == 2;
    std::fprintf(stderr, "status %d: %s; %s\n", result.status, result.message.c_str(),
                 said.c_str());
    std::_Exit(result.status != SHARDRT_OK && kept && !said.empty() ? 0 : 1);
  };
  EXPECT_EXIT(stuckRank(), ::testing::ExitedWithCode(0), "has not completed its work");
}

// The deadline of a collective does not run while this rank still computes what it needs.
TEST_F(DeviceRun, DeadlinesBeginWithTheirCollectives) {
  StreamModels ranks(2);
  for (int step = 0; step < 5; ++step) { // eager, and from graphs
    for (StreamEnd *end : ranks.ends)
      end->deadlines.clear();
    ranks.models->expectRight(ranks.models->run(iota(6)), iota(6));
    for (StreamEnd *end : ranks.ends) {
      ASSERT_FALSE(end->deadlines.empty());
      EXPECT_FALSE(end->deadlines.front()) << "step " << step;
      EXPECT_TRUE(std::ranges::count(end->deadlines, true) > 0) << "step " << step;
    }
  }
}

// What is needed for a graph may be missing where a run is not captured.
TEST_F(DeviceRun, RunsThatCannotBeCapturedAreEager) {
  for (std::atomic<bool> *missing : {&FakeDevice::noPinned, &FakeDevice::noCapture}) {
    StreamModels ranks(2);
    for (int step = 0; step < 6; ++step) {
      *missing = step >= 1;
      ranks.models->expectRight(ranks.models->run(iota(6, float(step))), iota(6, float(step)));
    }
    *missing = false;
    ranks.models->expectRight(ranks.models->run(iota(6)), iota(6));
  }
  EXPECT_EQ(FakeDevice::graphLaunches, 0);
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
