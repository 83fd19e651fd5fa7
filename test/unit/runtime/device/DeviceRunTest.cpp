// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs on a device that runs nothing before it has to.
#include "test/unit/runtime/device/FakeModels.h"

using namespace shardc::rt;
using test::DeviceRun;
using test::FakeArtifact, test::FakeDevice, test::FakeModels, test::FakeResult, test::iota;

TEST_F(DeviceRun, RanksExchangeThroughTheHost) {
  for (uint32_t flags : {0u, uint32_t(SHARDRT_NO_COMM_THREAD)})
    for (int32_t world : {2, 4}) {
      FakeModels models(world, [&](shardrt_config &config) { config.flags = flags; });
      for (size_t n : {5, 1000, 5, 5})
        models.expectRight(models.run(iota(n)), iota(n));
      EXPECT_EQ(FakeDevice::graphLaunches, 0) << "the host takes part";
    }
}

TEST_F(DeviceRun, WholeTensorsOnEveryRank) {
  FakeModels models(2);
  const std::vector<float> x = iota(70);
  std::vector<std::vector<float>> y(2, std::vector<float>(x.size()));
  std::vector<float> totals(2);
  for (int32_t scope : {SHARDRT_GLOBAL, SHARDRT_SHARED}) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        const int64_t n = int64_t(x.size());
        const size_t to = scope == SHARDRT_SHARED ? 0 : rank;
        shardrt_tensor in = shardrt::view<const float>(x, {&n, 1});
        shardrt_tensor out[] = {shardrt::view<float>(y[to], {&n, 1}, scope),
                                shardrt::view<float>({&totals[to], 1}, {}, scope)};
        models.models[rank]->run("forward", {&in, 1}, out);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(y[0][i], FakeArtifact::expected(x[i], 2));
    EXPECT_EQ(totals[0], 28);
    EXPECT_EQ(y[1], y[0]);
  }
}

TEST_F(DeviceRun, StepsOfOneRankBecomeGraphs) {
  FakeModels models(1);
  // The state is updated where it is, and outputs are staged in the same memory: the first step is
  // eager, and the second is captured.
  for (int step = 0; step < 7; ++step)
    models.expectRight(models.run(iota(6, float(step))), iota(6, float(step)));
  EXPECT_EQ(FakeDevice::graphLaunches, 6);
  EXPECT_EQ(models.models[0]->memoryUsed().scratch_bytes, 48u);
}

TEST_F(DeviceRun, GraphsEndWithTheirScratchMemory) {
  FakeModels models(1);
  for (int step = 0; step < 4; ++step)
    models.expectRight(models.run(iota(6)), iota(6));
  EXPECT_EQ(FakeDevice::graphLaunches, 3);
  models.expectRight(models.run(iota(600)), iota(600)); // all buffers grow
  int launches = FakeDevice::launches;
  for (int step = 0; step < 8; ++step)
    models.expectRight(models.run(iota(6, 3)), iota(6, 3));
  EXPECT_GT(FakeDevice::launches, launches) << "captured anew";
  EXPECT_GT(FakeDevice::graphLaunches, 4);
  // Another run needs more, and the graphs of this one are of no use then.
  test::fake::scratchFactor = 1000;
  models.expectRight(models.run(iota(5)), iota(5));
  test::fake::scratchFactor = 1;
  launches = FakeDevice::launches;
  for (int step = 0; step < 4; ++step)
    models.expectRight(models.run(iota(6, 4)), iota(6, 4));
  EXPECT_GT(FakeDevice::launches, launches);
}

TEST_F(DeviceRun, FailuresOfKernels) {
  for (int steps : {0, 5}) { // before graphs, and in one
    FakeModels models(1);
    for (int step = 0; step < steps; ++step)
      models.expectRight(models.run(iota(4)), iota(4));
    std::vector<FakeResult> results = models.run(std::vector<float>{1, 2, -1, 3});
    EXPECT_EQ(results[0].status, SHARDRT_PROGRAM_ERROR);
    EXPECT_EQ(results[0].message, "embed (model.py:3): index is out of range");
    // The host learns of it behind the writes.
    results = models.run(iota(4));
    EXPECT_EQ(results[0].status, SHARDRT_TORN) << results[0].message;
    EXPECT_NE(results[0].message.find("index is out of range"), std::string::npos);
  }
}

TEST_F(DeviceRun, NothingLeavesARankAfterAFailure) {
  for (uint32_t flags : {0u, uint32_t(SHARDRT_NO_COMM_THREAD)}) {
    FakeModels models(2, [&](shardrt_config &config) { config.flags = flags; });
    models.expectRight(models.run(iota(4)), iota(4));
    std::vector<FakeResult> results = models.run({{1, 2, 3}, {1, -2, 3}});
    EXPECT_EQ(results[1].status, SHARDRT_PROGRAM_ERROR);
    EXPECT_EQ(results[1].message, "embed (model.py:3): index is out of range");
    EXPECT_EQ(results[0].status, SHARDRT_ABORTED);
    EXPECT_NE(results[0].message.find("index is out of range"), std::string::npos)
        << results[0].message;
  }
}

TEST_F(DeviceRun, ARankThatIsMissing) {
  FakeModels models(2, [](shardrt_config &config) { config.timeout_s = 3; });
  models.expectRight(models.run(iota(4)), iota(4));
  int64_t n = 4;
  std::vector<float> x = iota(4);
  FakeResult alone = models.runRank(0, shardrt::view<const float>(x, {&n, 1}), iota(4));
  EXPECT_EQ(alone.status, SHARDRT_TIMEOUT);
  EXPECT_NE(alone.message.find("all_reduce.0 (y (model.py:5))"), std::string::npos)
      << alone.message;
  EXPECT_NE(alone.message.find("rank 1"), std::string::npos) << alone.message;
}

TEST_F(DeviceRun, MemoryRunsOut) {
  FakeModels models(1);
  FakeDevice::largestAllocation = 10000;
  FakeResult result = models.run(iota(5000))[0];
  FakeDevice::largestAllocation = UINT64_MAX;
  EXPECT_EQ(result.status, SHARDRT_OUT_OF_MEMORY);
  EXPECT_NE(result.message.find("the arena: the fake device has no more than 10000"),
            std::string::npos)
      << result.message;
  models.expectRight(models.run(iota(5)), iota(5));
}

TEST_F(DeviceRun, TimesOfOpsAndCollectives) {
  FakeModels models(2, [](shardrt_config &config) { config.flags = SHARDRT_RECORD_EVENTS; });
  for (int step = 0; step < 3; ++step)
    models.expectRight(models.run(iota(4)), iota(4));
  EXPECT_EQ(FakeDevice::graphLaunches, 0);
  std::map<std::pair<int32_t, std::string>, int> seen;
  for (const shardrt_event &event : models.models[1]->eventLog().sorted()) {
    ++seen[{event.stream, event.name}];
    EXPECT_GE(event.duration_us, 0);
  }
  const std::map<std::pair<int32_t, std::string>, int> wanted = {
      {{SHARDRT_STREAM_COMPUTE, "twice"}, 3},     {{SHARDRT_STREAM_COMPUTE, "sum"}, 3},
      {{SHARDRT_STREAM_COMM, "all_reduce.0"}, 3}, {{SHARDRT_STREAM_COMM, "all_reduce.1"}, 3},
      {{SHARDRT_STREAM_WAIT, "all_reduce.0"}, 3}, {{SHARDRT_STREAM_WAIT, "all_reduce.1"}, 3}};
  EXPECT_EQ(seen, wanted);
}

TEST_F(DeviceRun, WhatIsRefused) {
  FakeArtifact artifact(1);
  auto refusal = [&](const std::function<void(shardrt_config &)> &adjust, bool emulated = false) {
    shardrt_config config = shardrt::defaultConfig();
    adjust(config);
    std::string json = artifact.json;
    if (emulated)
      json.replace(json.find("\"chips\""), 7, "\"emulated\": true, \"chips\"");
    shardrt_manifest manifest = artifact.manifest;
    manifest.json = json.data();
    manifest.json_bytes = json.size();
    try {
      Model model(manifest, config, test::fakeRegistry());
    } catch (const Failure &failure) {
      return failure.message;
    }
    return std::string();
  };
  EXPECT_EQ(refusal([](auto &) {}), "");
  EXPECT_EQ(refusal([](auto &config) { config.device = "3"; }), "");
  EXPECT_NE(refusal([](auto &config) { config.device = "gpu"; }).find("expected a number"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &config) { config.device = "emulated"; }).find("not compiled for"),
            std::string::npos);
  EXPECT_NE(refusal([](auto &) {}, true).find("compiled for the emulated device"),
            std::string::npos);
  EXPECT_EQ(refusal([](auto &config) { config.device = "emulated"; }, true), "");
  shardrt_kernel kernels[] = {{"unknown", nullptr, 0, 1, {32, 1, 1}, 0}};
  artifact.program.kernels = kernels;
  artifact.program.n_kernels = 1;
  EXPECT_NE(refusal([](auto &) {}).find("lacks the kernel unknown"), std::string::npos);
  kernels[0].block[1] = 64;
  EXPECT_NE(refusal([](auto &) {}).find("kernel 0 unknown is malformed"), std::string::npos);
  artifact.program.n_images = 0;
  EXPECT_NE(refusal([](auto &) {}).find("it has kernels, and no image"), std::string::npos);
}

TEST_F(DeviceRun, TablesOfPlugins) {
  auto problem = [](const shardrt_device_plugin *table) {
    try {
      DevicePlugin{"it", table, nullptr}.check();
    } catch (const Failure &failure) {
      EXPECT_EQ(failure.status, SHARDRT_INCOMPATIBLE);
      return failure.message;
    }
    return std::string();
  };
  shardrt_device_plugin table = FakeDevice::table();
  EXPECT_EQ(problem(&table), "");
  EXPECT_NE(problem(nullptr).find("returned null"), std::string::npos);
  table.copy = nullptr;
  EXPECT_NE(problem(&table).find("of its table is null"), std::string::npos);
  table.version = 77;
  EXPECT_NE(problem(&table).find("version 77"), std::string::npos);
  table.struct_bytes = 8;
  EXPECT_NE(problem(&table).find("8 bytes"), std::string::npos);
}
