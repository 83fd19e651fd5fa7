// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Waits of the host that have bounds: for operands that may never come, and for a device that is
// stuck.
#include "runtime/device/DeviceCollectives.h"
#include "test/unit/runtime/device/FakeModels.h"

using namespace shardc::rt;
using test::DeviceRun;
using test::FakeDevice, test::FakeModels, test::FakeResult, test::iota;

namespace {

/// A call of the program's first collective, with no elements.
struct EmptyCall {
  explicit EmptyCall(Communicator &end) {
    std::vector<uint32_t> members;
    for (uint32_t rank = 0; rank < end.worldSize(); ++rank)
      members.push_back(rank);
    const int64_t none = 0;
    shardrt_collective_tensor tensor{nullptr, nullptr, &none, nullptr, nullptr};
    EXPECT_EQ(call.assign(test::fake::collectives[0], end.group(members), 1, &tensor), "");
  }
  CollectiveCall call;
};

/// Memory of the device, with work on a stream that nobody has waited for.
struct Busy {
  Busy() : device(test::fakeDevice()), fake(FakeDevice::newest), stream(device->makeStream()) {
    device->on([&](auto &table, void *handle, char *message) {
      return table.allocate(handle, 64, &memory, message);
    });
    device->on([&](auto &table, void *handle, char *message) {
      return table.fill(handle, memory, 0, 64, stream.get(), message);
    });
  }
  ~Busy() { device->plugin.functions->release(device->handle(), memory); }

  const std::shared_ptr<const Device> device;
  FakeDevice *const fake;
  const DeviceObject stream;
  void *memory = nullptr;
};

} // namespace

// A deadline is that of the collective: what the rank computes before may take longer.
TEST_F(DeviceRun, OperandsHaveNoDeadline) {
  Busy busy;
  auto ends = makeLocalWorld(2);
  StagedTransport staged(*busy.device, *ends[0]->hostTransport(), busy.memory, *ends[0]);
  int looks = 0;
  staged.setLook([&] { ++looks; });
  staged.expect(busy.stream.get());
  EmptyCall empty(*ends[0]);
  EXPECT_NO_THROW(staged.await(empty.call, Clock::time_point::min()));
  EXPECT_GT(looks, 0) << "what may keep operands from coming is looked at";
  busy.device->synchronizeStream(busy.stream.get());
}

TEST_F(DeviceRun, OperandsThatNobodyWaitsForAnyMore) {
  Busy busy;
  auto ends = makeLocalWorld(2);
  StagedTransport staged(*busy.device, *ends[0]->hostTransport(), busy.memory, *ends[0]);
  EmptyCall empty(*ends[0]);
  // What was looked at has failed.
  staged.setLook([] { throw Failure(SHARDRT_ABORTED, "a collective before it has failed"); });
  busy.fake->stuck = true;
  staged.expect(busy.stream.get());
  EXPECT_THROW(staged.await(empty.call, deadlineAfter(60)), Failure);
  // The world was given up: it is said in the words of its communicator.
  staged.setLook({});
  staged.reset();
  staged.expect(busy.stream.get());
  ends[1]->abort(SHARDRT_ABORTED, "rank 1 has seen enough");
  try {
    staged.await(empty.call, deadlineAfter(60));
    ADD_FAILURE() << "the operands never came";
  } catch (const Failure &failure) {
    EXPECT_EQ(failure.status, SHARDRT_ABORTED);
    for (const char *part : {"all_reduce.0 (y (model.py:5))", "rank 1 has seen enough"})
      EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
  }
  busy.fake->stuck = false;
  busy.device->synchronizeStream(busy.stream.get());
}

namespace {

/// Of a world that is given up after some polls.
class EndingTransport final : public StreamTransport {
public:
  std::string_view device() const override { return "cuda"; }
  void enqueue(const CollectiveCall &, void *, Clock::time_point) override { ++enqueued; }
  void poll(const CollectiveCall &oldest, Clock::time_point) override {
    if (++polls == 5)
      throw Failure(SHARDRT_ABORTED, describe(*oldest.collective) + ": rank 1 has seen enough");
  }
  int polls = 0, enqueued = 0;
};

} // namespace

// Outside of a program, what is on the stream may wait for one of the caller's.
TEST_F(DeviceRun, ACollectiveOutsideOfAProgramIsGivenUpWithTheWorld) {
  Busy busy;
  auto ends = makeLocalWorld(2);
  EmptyCall empty(*ends[0]);
  EndingTransport transport;
  EventLog events(false, 0);
  DeviceTimeline timeline(*busy.device, events);
  CommStream::Options options;
  options.thread = false;
  StreamCollectives collectives(
      *busy.device, busy.stream.get(), transport, timeline, 60, nullptr,
      std::make_unique<StagedCollectives>(*busy.device, busy.stream.get(), busy.memory, *ends[0],
                                          *ends[0]->hostTransport(), events, options));
  const int64_t none = 0;
  shardrt_collective_tensor tensor{nullptr, nullptr, &none, nullptr, nullptr};
  busy.fake->stuck = true;
  EXPECT_THROW(collectives.runOutside(test::fake::collectives[0],
                                      const_cast<Group *>(empty.call.group), 1, &tensor),
               Failure);
  EXPECT_EQ(transport.polls, 5);
  EXPECT_EQ(transport.enqueued, 0);
  busy.fake->stuck = false;
  busy.device->synchronizeStream(busy.stream.get());
}

// Every call that would wait for the device catches who makes it, for ever.
TEST_F(DeviceRun, AStuckDeviceKeepsNobody) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto stuckRank = [] {
    alarm(60); // its signal is none of the exit status that is expected
    Device::patience = 0.2;
    static std::string said; // what the log has got
    auto models = std::make_unique<FakeModels>(2, [](shardrt_config &config) {
      config.log = [](void *, int32_t, int32_t, const char *text) {
        if (std::string(text).find("is not released") != std::string::npos)
          said = text;
      };
    });
    models->expectRight(models->run(iota(4)), iota(4));
    models->devices[0]->stuck = true;
    models->ends[1].endpoint->communicator->abort(SHARDRT_ABORTED, "rank 1 has seen enough");
    const int64_t n = 4;
    std::vector<float> x = iota(4);
    FakeResult result = models->runRank(0, shardrt::view<const float>(x, {&n, 1}), iota(4));
    models.reset();
    std::fprintf(stderr, "status %d: %s; %s\n", result.status, result.message.c_str(),
                 said.c_str());
    std::_Exit(result.status == SHARDRT_ABORTED && !said.empty() ? 0 : 1);
  };
  EXPECT_EXIT(stuckRank(), ::testing::ExitedWithCode(0),
              "rank 1 has seen enough.*has not completed its work");
}
