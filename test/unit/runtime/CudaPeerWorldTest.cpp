// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives between emulated devices of ranks that are threads, by kernels over peer access: the
// suites of all communicators, on several devices and on one. Some run on a real device as well,
// which all ranks share (scripts/gpu.sh).
#include "runtime/device/DeviceCollectives.h"
#include "test/unit/runtime/AnyElements.h"
#include "test/unit/runtime/CudaRanks.h"

#include <cstring>

using namespace shardc::rt;
using test::CudaEnd;
using test::onDevices;
using test::Outcome;
using test::ranks;
using test::threads;

SHARDRT_HOST_CONFORMANCE(CudaPeer, test::cudaWorlds("devices", threads(), "eager", "peers"),
                         test::cudaWorlds("devicesLazy", threads(), "lazy", "peers"),
                         test::cudaWorlds("devicesRandom", threads(), "random:13", "peers"),
                         test::cudaWorlds("oneDevice", threads(), "eager", "peers", 1),
                         test::cudaWorlds("oneDeviceLazy", threads(), "lazy", "peers", 1),
                         test::cudaWorlds("oneDeviceRandom", threads(), "random:17", "peers", 1));

using CudaPeers = test::OnEmulatedDevice;
/// Also on a real device.
using CudaPeersOfAnyDevice = test::OnDevice;

namespace {

void expectOk(const std::vector<Outcome> &outcomes) {
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

/// A reduction over two dims, of which the second is scattered unevenly if it is a reduce-scatter.
struct AnyReduction {
  AnyReduction(shardrt_type type, uint32_t reduction, bool scatters, uint32_t world)
      : type(type), collective(scatters ? SHARDRT_REDUCE_SCATTER : SHARDRT_ALL_REDUCE, reduction,
                               {{type, 2, -1, scatters ? 1 : -1}}),
        parts(world) {
    std::mt19937_64 random(type * 100 + reduction * 10 + world);
    for (uint32_t q = 0; q < world; ++q) {
      in.push_back(test::anything(type, size_t(extents[0] * extents[1]), random));
      parts[q] = q == 0 ? 0 : (q + 1 == world ? 37 - 5 * int64_t(world - 2) : 5);
    }
  }
  std::vector<std::vector<uint8_t>>
  run(const std::function<void(const std::function<void(Communicator &)> &)> &onRanks) {
    auto out = in;
    onRanks([&](Communicator &end) {
      const uint32_t rank = end.rank();
      shardrt_collective_tensor tensor{in[rank].data(), out[rank].data(), extents, nullptr,
                                       parts.data()};
      CollectiveCall call;
      ASSERT_EQ(call.assign(collective.desc, end.group(ranks(uint32_t(in.size()))), 1, &tensor),
                "");
      test::runCollective(end, call, 60);
    });
    return out;
  }
  shardrt_type type;
  test::Collective collective;
  int64_t extents[2] = {3, 37};
  std::vector<int64_t> parts;
  std::vector<std::vector<uint8_t>> in;
};

} // namespace

// Of every type and reduction, of any bits, with the order of ranks on the host.
TEST_F(CudaPeersOfAnyDevice, BitsOfTheCpu) {
  for (uint32_t world : {2u, 3u, 4u})
    for (shardrt_type type : test::types)
      for (uint32_t how = SHARDRT_SUM; how <= SHARDRT_PROD; ++how)
        for (bool scatters : {false, true}) {
          if (type == SHARDRT_BOOL && how == SHARDRT_AVG)
            continue;
          AnyReduction reduction(type, how, scatters, world);
          auto wanted = reduction.run([&](auto body) {
            expectOk(test::runRanks(makeLocalWorld(world), [&](Communicator &end) {
              test::connectGroups(end, {ranks(world)});
              body(end);
            }));
          });
          auto got = reduction.run([&](auto body) {
            expectOk(onDevices(
                threads(), world,
                [&](CudaEnd &end) {
                  body(end);
                  EXPECT_EQ(end.enqueued, 1u) << "it went through the host";
                },
                "peers", 2, "random:3", true));
          });
          const auto width = size_t(typeBytes(type));
          for (uint32_t rank = 0; rank < world; ++rank)
            for (size_t i = 0; i < wanted[rank].size() / width; ++i) {
              if (test::isNan(type, wanted[rank].data(), i) &&
                  test::isNan(type, got[rank].data(), i))
                continue; // of NaNs, bits do not count
              ASSERT_EQ(std::memcmp(&wanted[rank][i * width], &got[rank][i * width], width), 0)
                  << typeName(type) << ", reduction " << how << " of " << world << ", rank " << rank
                  << ", element " << i << ": " << test::get(type, got[rank].data(), i)
                  << " instead of " << test::get(type, wanted[rank].data(), i);
            }
        }
}

namespace {

/// All-reduces one after the other of what the stream itself computes before, without a wait of the
/// host in between. Twice: each is done again, in place, at once. Otherwise its operand is written
/// anew behind it.
void pipeline(CudaEnd &end, bool twice) {
  const uint32_t world = end.worldSize();
  constexpr int64_t count = 300;
  test::Collective collective(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_U8, 1, -1, -1}});
  void *stream = end.device.stream.get();
  char *a = end.device.put(nullptr, count), *b = end.device.put(nullptr, count);
  const Device &device = end.device.device;
  DeviceObject done = device.makeEvent();
  CollectiveCall call;
  auto reduce = [&](char *in, char *out) {
    shardrt_collective_tensor tensor{in, out, &count, nullptr, nullptr};
    ASSERT_EQ(call.assign(collective.desc, end.group(ranks(world)), 1, &tensor), "");
    end.transport->enqueue(call, stream, deadlineAfter(60));
  };
  auto finish = [&] {
    device.record(done, stream);
    while (!device.done(done)) {
      end.transport->poll(call, deadlineAfter(60));
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  auto fill = [&] {
    device.on([&](auto &table, void *handle, char *message) {
      return table.fill(handle, a, uint8_t(end.rank() + 1), count, stream, message);
    });
  };
  try {
    for (int i = 0; i < 3; ++i) {
      fill();
      reduce(a, b);
      if (twice)
        reduce(b, b);
    }
    if (!twice)
      fill();
    end.barrier(deadlineAfter(60)); // what the host of one knows orders nothing of the other
    finish();
    std::vector<uint8_t> got(count);
    end.device.get(got.data(), b, count);
    for (uint8_t one : got)
      ASSERT_EQ(one, uint8_t(world * (world + 1) / 2 * (twice ? world : 1)));
  } catch (const Failure &failure) {
    end.abort(SHARDRT_ABORTED, failure.message);
    end.transport->giveUp();
    throw;
  }
}

} // namespace

TEST_F(CudaPeersOfAnyDevice, StreamsNeverWaitForTheHost) {
  for (int devices : {1, 2, 3})
    for (const char *order : {"eager", "lazy", "random:1", "random:2", "random:3"})
      for (bool twice : {false, true})
        expectOk(onDevices(
            threads(), 3, [&](CudaEnd &end) { pipeline(end, twice); }, "peers", devices, order,
            true));
}

// Each of the waits is needed: without it something is touched out of order.
TEST_F(CudaPeers, EveryEventWaitThatIsLeftOutIsReported) {
  auto setDrop = test::CudaDevice::symbol<int(const char *)>("cuEmulatedSetDrop");
  auto count = test::CudaDevice::symbol<uint64_t(const char *)>("cuEmulatedCount");
  const test::WorldKind world = threads();
  auto run = [&] {
    return test::runRanks(world.make(2), [&](Communicator &inner) {
      CudaEnd end(inner, int(inner.rank()));
      test::connectGroups(end, {ranks(2)});
      pipeline(end, false);
    });
  };
  test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "peers");
  test::CudaDevice::setOrder("lazy");
  ASSERT_EQ(setDrop(""), 0);
  expectOk(run());
  const uint64_t waits = count("wait");
  ASSERT_EQ(waits, 12u) << "two ranks, three collectives, before and after each";
  for (uint64_t dropped = 0; dropped < waits; ++dropped) {
    ASSERT_EQ(setDrop(("wait:" + std::to_string(dropped)).c_str()), 0);
    run();
    // Also as a read of what nothing has written, if it runs so early.
    EXPECT_NE(test::CudaDevice::reports(), "") << "wait " << dropped << " of " << waits;
    test::CudaDevice::clearReports();
  }
  ASSERT_EQ(setDrop(""), 0);
}

// Devices that do not reach each other: through the host, or an error if that was not wanted. Ranks
// on one device need no access.
TEST_F(CudaPeers, WithoutPeerAccessItGoesThroughTheHost) {
  auto setPeers = test::CudaDevice::symbol<void(int)>("cuEmulatedSetPeers");
  setPeers(0);
  auto body = [](bool onDevice, const char *why) {
    return [=](CudaEnd &end) {
      EXPECT_EQ(end.transport != nullptr, onDevice);
      EXPECT_EQ(end.whyNot, why);
      std::vector<float> data(64, 1.0f);
      test::Collective collective(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
      const int64_t extents[] = {64};
      shardrt_collective_tensor tensor{data.data(), data.data(), extents, nullptr, nullptr};
      CollectiveCall call;
      ASSERT_EQ(call.assign(collective.desc, end.group(ranks(2)), 1, &tensor), "");
      test::runCollective(end, call, 60);
      EXPECT_EQ(data[63], 2.0f);
      EXPECT_EQ(end.enqueued, onDevice ? 1u : 0u);
    };
  };
  const char *why = "rank 0: there is no peer access from device 0 to device 1; "
                    "rank 1: there is no peer access from device 1 to device 0";
  expectOk(onDevices(threads(), 2, body(false, why), "auto"));
  expectOk(onDevices(threads(), 2, body(true, ""), "auto", 1));
  for (const Outcome &outcome : onDevices(threads(), 2, body(false, ""), "peers")) {
    EXPECT_EQ(outcome.status, SHARDRT_NOT_FOUND);
    EXPECT_NE(outcome.message.find("SHARDRT_DEVICE_COLLECTIVES asks for"), std::string::npos);
    EXPECT_NE(outcome.message.find("from device 0 to device 1"), std::string::npos);
  }
  setPeers(1);
  expectOk(onDevices(threads(), 2, body(true, ""), "auto"));
}

TEST_F(CudaPeers, ProcessesHaveNone) {
  for (const Outcome &outcome : onDevices(test::processes(), 2, [](CudaEnd &) {}, "peers")) {
    EXPECT_EQ(outcome.status, SHARDRT_NOT_FOUND);
    EXPECT_NE(outcome.message.find("ranks are processes"), std::string::npos) << outcome.message;
  }
}

// A rank that fails between two collectives leaves only when its memory is not used any more, and
// the others do not wait for their deadline.
TEST_F(CudaPeers, ARankThatFailsBetweenCollectives) {
  for (const char *order : {"eager", "lazy", "random:19"}) {
    const Clock::time_point begin = Clock::now();
    auto outcomes = onDevices(
        threads(), 3,
        [](CudaEnd &end) {
          pipeline(end, true);
          if (end.rank() == 1)
            throw Failure(SHARDRT_PROGRAM_ERROR, "broken");
          pipeline(end, true);
        },
        "peers", 3, order);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
    for (uint32_t rank : {0u, 2u}) {
      EXPECT_EQ(outcomes[rank].status, SHARDRT_ABORTED);
      EXPECT_NE(outcomes[rank].message.find("rank 1 has left"), std::string::npos)
          << outcomes[rank].message;
    }
  }
}

// Rank 0's kernel has failed. Rank 1 gets what came of it, and rank 2 what came of that.
TEST_F(CudaPeers, WhatAFailedKernelComputedIsNoResultBeyondItsGroup) {
  test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "peers");
  for (const char *order : {"eager", "lazy", "random:5"})
    for (bool fails : {false, true}) {
      test::CudaDevice::setOrder(order);
      std::atomic<int> atTheEnd{0};
      auto outcomes = test::runRanks(makeLocalWorld(3), [&](Communicator &inner) {
        CudaEnd end(inner, int(inner.rank()));
        test::connectGroups(end, {{0, 1}, {1, 2}});
        const uint64_t own = fails && end.rank() == 0 ? uint64_t(1) << 32 : 0;
        char *word = end.device.put(&own, sizeof own);
        const std::vector<float> ones(64, 1.0f);
        char *a = end.device.put(ones.data(), 256);
        end.transport->watch(word, &own);
        const Device &device = end.device.device;
        void *compute = end.device.stream.get();
        EventLog events(false, int32_t(end.rank()));
        DeviceTimeline timeline(device, events);
        CommStream::Options options;
        options.thread = false;
        StreamCollectives collectives(
            device, compute, *end.transport, timeline, 60, nullptr,
            std::make_unique<StagedCollectives>(device, compute, word, inner,
                                                *inner.hostTransport(), events, options));
        test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
        const int64_t count = 64;
        shardrt_collective_tensor tensor{a, a, &count, nullptr, nullptr};
        collectives.begin();
        if (end.rank() < 2)
          collectives.runNow(sum.desc, &end.group(std::vector<uint32_t>{0, 1}), 1, &tensor);
        if (end.rank() > 0)
          collectives.runNow(sum.desc, &end.group(std::vector<uint32_t>{1, 2}), 1, &tensor);
        collectives.join();
        DeviceObject done = device.makeEvent();
        device.record(done, compute);
        ++atTheEnd;
        if (own) { // it says so when the others are at their ends
          while (!end.givenUp() && (!device.done(done) || atTheEnd < 3))
            std::this_thread::yield();
          end.abort(SHARDRT_PROGRAM_ERROR, "a kernel of rank 0 has failed");
          return;
        }
        try {
          collectives.waitFor(done);
        } catch (const Failure &) {
          // Compute has waited for both collectives: then nothing touches what is released now.
          device.synchronizeStream(compute);
          throw;
        }
        std::vector<float> got(64);
        end.device.get(got.data(), a, 256);
        EXPECT_EQ(got[63], end.rank() == 0 ? 2.0f : 3.0f);
      });
      for (uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ(outcomes[rank].status, fails && rank > 0 ? SHARDRT_ABORTED : SHARDRT_OK)
            << "rank " << rank << ", " << order << ": " << outcomes[rank].message;
    }
  test::CudaDevice::setOrder("eager");
}

// Rank 0's part of a collective never ends: rank 1, of whose memory it is, may release nothing.
TEST_F(CudaPeers, WorkOfOthersThatNeverEnds) {
  test::EnvironmentVariable wish("SHARDRT_DEVICE_COLLECTIVES", "peers");
  const double patience = Device::patience.exchange(0.2);
  std::atomic<int> asked{0};
  auto outcomes = test::runRanks(makeLocalWorld(2), [&](Communicator &inner) {
    test::CudaDevice device(int(inner.rank()));
    shardrt_device_plugin table = device.table();
    if (inner.rank() == 0)
      table.event_query = [](void *, void *, int32_t *done, char *) -> shardrt_status {
        *done = 0;
        return SHARDRT_OK;
      };
    std::string whyNot;
    auto transport =
        connectDevices(inner, table, device.device.handle(), {}, deadlineAfter(60), whyNot);
    ASSERT_TRUE(transport) << whyNot;
    test::Collective sum(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}});
    const int64_t count = 8 + inner.rank(); // the ranks disagree, when both have come
    char *a = device.put(nullptr, 64);
    shardrt_collective_tensor tensor{a, a, &count, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(sum.desc, inner.group(ranks(2)), 1, &tensor), "");
    EXPECT_FALSE(transport->isStuck());
    EXPECT_THROW(transport->enqueue(call, device.stream.get(), deadlineAfter(60)), Failure);
    EXPECT_EQ(transport->isStuck(), inner.rank() == 1);
    // Rank 0's event is known until both have been asked.
    ++asked;
    for (int i = 0; i < 20000 && asked < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    inner.barrier(Clock::now()); // it was given up: nobody waits
  });
  Device::patience = patience;
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_MISMATCH) << outcome.message;
}
