// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the plugin itself waits for other ranks, and one of them never comes.
#include "test/unit/runtime/CudaRanks.h"

using namespace shardc::rt;
using test::CudaEnd;
using test::onDevices;
using test::Outcome;
using test::ranks;
using test::threads;

namespace {

using CudaWait = test::OnEmulatedDevice;

uint64_t communicators() {
  return test::CudaDevice::symbol<uint64_t(const char *)>("cuEmulatedCount")("communicators");
}

} // namespace

// A product is measured, which waits for its stream, and with it for a collective.
TEST_F(CudaWait, AProductIsMeasuredBehindACollectiveThatNeverEnds) {
  test::EnvironmentVariable tune("SHARDRT_GEMM_TUNE", "1");
  test::Collective reduce(SHARDRT_ALL_REDUCE, SHARDRT_SUM, {{SHARDRT_F32, 1, -1, -1}},
                          "all_reduce.7", "encoder.layer.3 (bert.py:42)");
  auto outcomes = onDevices(threads(), 2, [&](CudaEnd &end) {
    test::CudaDevice &device = end.device;
    const std::vector<float> values(64, 1.0f);
    const int64_t extents[] = {64};
    char *memory = device.put(values.data(), 256);
    shardrt_collective_tensor tensor{memory, memory, extents, nullptr, nullptr};
    CollectiveCall call;
    ASSERT_EQ(call.assign(reduce.desc, end.group(ranks(2)), 1, &tensor), "");
    auto wait = [&](double timeout) {
      DeviceObject done = device.device.makeEvent();
      device.device.record(done, device.stream.get());
      while (!device.device.done(done))
        end.transport->poll(call, deadlineAfter(timeout));
    };
    end.transport->enqueue(call, device.stream.get(), deadlineAfter(60));
    wait(60);
    if (end.rank() == 1) {
      device.releaseAll();
      return;
    }
    end.transport->enqueue(call, device.stream.get(), deadlineAfter(60));
    shardrt_gemm product{};
    product.a = product.b = memory;
    product.c = memory + 64;
    product.m = product.n = product.k = product.lda = product.ldb = product.ldc = 4;
    product.batch = 1;
    product.alpha = 1;
    product.type = SHARDRT_F32;
    int looks = 0;
    device.device.whileWaiting = [&] {
      ++looks;
      end.transport->poll(call, deadlineAfter(60));
    };
    try {
      device.device.multiply(product, device.stream.get());
      ADD_FAILURE() << "rank 1 never came";
    } catch (const Failure &failure) {
      EXPECT_GT(looks, 0);
      EXPECT_EQ(failure.status, SHARDRT_ABORTED);
      for (const char *part : {"all_reduce.7 (encoder.layer.3 (bert.py:42))", "rank 1 has left"})
        EXPECT_NE(failure.message.find(part), std::string::npos) << failure.message;
    }
    end.transport->giveUp();
    device.device.synchronizeStream(device.stream.get());
    device.releaseAll();
  });
  for (const Outcome &outcome : outcomes)
    EXPECT_EQ(outcome.status, SHARDRT_OK) << outcome.message;
}

// A split that not all ranks come to: what it has made so far is ended with the rest.
TEST_F(CudaWait, ASplitThatFailsLeavesNothing) {
  constexpr uint32_t world = 3;
  const uint64_t before = communicators();
  std::vector<std::unique_ptr<test::CudaDevice>> devices;
  for (uint32_t rank = 0; rank < world; ++rank)
    devices.push_back(std::make_unique<test::CudaDevice>(int(rank)));
  const shardrt_device_communication &table = *devices[0]->table().communication;
  char message[SHARDRT_MESSAGE_BYTES] = "";
  shardrt_device_comm_world facts{};
  facts.struct_bytes = sizeof facts;
  facts.world_size = world;
  ASSERT_EQ(table.make_id(devices[0]->device.handle(), facts.id, message), SHARDRT_OK) << message;
  std::atomic<bool> stop{false};
  facts.host = &stop;
  facts.must_stop = [](void *host) { return int32_t(*static_cast<std::atomic<bool> *>(host)); };
  void *ends[world] = {};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      shardrt_device_comm_world mine = facts;
      mine.rank = int32_t(rank);
      char text[SHARDRT_MESSAGE_BYTES] = "";
      EXPECT_EQ(table.open(devices[rank]->device.handle(), &mine, &ends[rank], text), SHARDRT_OK)
          << text;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(communicators(), before + world);
  // Rank 0 is told to stop once its part is made.
  std::thread stopper([&] {
    while (communicators() == before + world)
      std::this_thread::yield();
    stop = true;
  });
  const uint32_t members[] = {0, 1};
  const shardrt_device_comm_group group{members, 2, 0};
  EXPECT_EQ(table.connect(ends[0], &group, 1, message), SHARDRT_ABORTED);
  EXPECT_NE(std::string(message).find("ncclCommSplit was stopped"), std::string::npos) << message;
  stopper.join();
  for (void *end : ends) {
    table.abort(end);
    table.close(end);
  }
  EXPECT_EQ(communicators(), before);
}
