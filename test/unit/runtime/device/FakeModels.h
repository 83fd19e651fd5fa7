// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models of the program for the fake device, one for each rank, on threads.
#ifndef SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEMODELS_H
#define SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEMODELS_H

#include "runtime/comm/Endpoint.h"
#include "runtime/include/shardrt.hpp"
#include "test/unit/runtime/device/FakeProgram.h"

#include <numeric>
#include <thread>

namespace test {

struct FakeResult {
  shardrt_status status = SHARDRT_OK;
  std::string message;
  std::vector<float> y;
  float total = 0;
};

/// Ranks that are threads, each with a fake device.
class FakeModels {
public:
  explicit FakeModels(int32_t world, const std::function<void(shardrt_config &)> &adjust = {},
                      std::vector<std::unique_ptr<shardc::rt::Communicator>> given = {})
      : artifact(world) {
    if (given.empty())
      given = shardc::rt::makeLocalWorld(uint32_t(world));
    for (auto &end : given)
      ends.push_back(shardrt_communicator{std::make_shared<shardc::rt::Endpoint>(std::move(end))});
    for (int32_t rank = 0; rank < world; ++rank) {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = world;
      config.rank = rank;
      config.communicator = &ends[size_t(rank)];
      config.timeout_s = 20;
      config.log = [](void *, int32_t, int32_t, const char *) {};
      if (adjust)
        adjust(config);
      models.push_back(
          std::make_unique<shardc::rt::Model>(artifact.manifest, config, fakeRegistry()));
      models.back()->loadCallback(FakeArtifact::parameter, nullptr);
      devices.push_back(FakeDevice::newest);
    }
  }

  FakeResult runRank(size_t rank, shardrt_tensor input, std::vector<float> y) {
    FakeResult result{SHARDRT_OK, "", std::move(y), 0};
    int64_t n = int64_t(result.y.size());
    shardrt_tensor outputs[] = {shardrt::view<float>(result.y, {&n, 1}, SHARDRT_LOCAL),
                                shardrt::view<float>({&result.total, 1}, {}, SHARDRT_LOCAL)};
    try {
      models[rank]->run("forward", {&input, 1}, outputs);
    } catch (const shardc::rt::Failure &failure) {
      result.status = failure.status;
      result.message = failure.message;
    }
    return result;
  }
  std::vector<FakeResult> run(const std::vector<std::vector<float>> &x) {
    std::vector<FakeResult> results(models.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < models.size(); ++rank)
      threads.emplace_back([&, rank] {
        int64_t n = int64_t(x[rank].size());
        results[rank] = runRank(rank, shardrt::view<const float>(x[rank], {&n, 1}),
                                std::vector<float>(x[rank].size()));
      });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
  std::vector<FakeResult> run(const std::vector<float> &x) {
    return run(std::vector<std::vector<float>>(models.size(), x));
  }
  void expectRight(const std::vector<FakeResult> &results, const std::vector<float> &x) {
    for (size_t rank = 0; rank < results.size(); ++rank) {
      EXPECT_EQ(results[rank].message, "");
      EXPECT_EQ(results[rank].total, 28);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(results[rank].y[i], FakeArtifact::expected(x[i], int32_t(models.size())))
            << "rank " << rank << ", element " << i;
    }
  }

  FakeArtifact artifact;
  std::vector<shardrt_communicator> ends;
  std::vector<std::unique_ptr<shardc::rt::Model>> models;
  std::vector<FakeDevice *> devices;
};

inline std::vector<float> iota(size_t n, float first = 0) {
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), first);
  return x;
}

/// Nothing is left when a test ends.
class DeviceRun : public ::testing::Test {
protected:
  void SetUp() override { FakeDevice::graphLaunches = FakeDevice::launches = 0; }
  void TearDown() override {
    EXPECT_EQ(FakeDevice::open, 0);
    EXPECT_EQ(FakeDevice::allocations, 0);
    EXPECT_EQ(FakeDevice::pinned, 0);
    EXPECT_EQ(FakeDevice::objects, 0);
  }
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_DEVICE_FAKEMODELS_H
