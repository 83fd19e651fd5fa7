// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are threads with the emulated device each, through the C ABI, and what the emulated
// device says of itself.
#ifndef SHARDC_TEST_UNIT_RUNTIME_DEVICE_EMULATEDRANKS_H
#define SHARDC_TEST_UNIT_RUNTIME_DEVICE_EMULATEDRANKS_H

#include "runtime/include/shardrt.hpp"
#include "test/unit/runtime/EnvironmentVariable.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <thread>

namespace test {

struct EmulatedResult {
  shardrt_status status = SHARDRT_OK;
  std::string message;
  std::vector<float> y;
  float total = 0;
};

inline int32_t emulatedParameter(void *, const char *name, shardrt_tensor *tensor) {
  static float w[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static int64_t calls = 41, extents[] = {8};
  const bool isW = std::strcmp(name, "w") == 0;
  tensor->data = isW ? static_cast<void *>(w) : &calls;
  tensor->type = isW ? SHARDRT_F32 : SHARDRT_I64;
  tensor->rank = isW ? 1 : 0;
  tensor->extents = extents;
  tensor->scope = SHARDRT_GLOBAL;
  return 0;
}

/// The artifact for a world of so many ranks, or that of this name; ranks are threads with the
/// emulated device. `stream`: of rank 0's caller.
class EmulatedRanks {
public:
  explicit EmulatedRanks(int32_t world, uint32_t flags = 0, void *stream = nullptr,
                         double timeout = 60, const std::string &name = "")
      : artifact(std::string(ARTIFACTS) + "/device_artifact_" +
                 (name.empty() ? std::to_string(world) : name) + ".so"),
        ends(shardrt::localCommunicators(world)) {
    for (int32_t rank = 0; rank < world; ++rank) {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = world;
      config.rank = rank;
      config.communicator = ends[size_t(rank)].get();
      config.timeout_s = timeout;
      config.device = "emulated";
      config.flags = flags;
      config.stream = rank == 0 ? stream : nullptr;
      config.log_level = SHARDRT_LOG_INFO;
      config.log_context = this;
      config.log = [](void *self, int32_t, int32_t, const char *text) {
        auto &here = *static_cast<EmulatedRanks *>(self);
        std::lock_guard lock(here.mutex);
        here.said += std::string(text) + "\n";
      };
      models.push_back(std::make_unique<shardrt::Model>(artifact.manifest(), config));
      shardrt::check(shardrt_load_parameters, models.back()->get(), emulatedParameter,
                     static_cast<void *>(nullptr));
    }
  }
  /// One rank. `data`: n elements, of the host or of the rank's device.
  EmulatedResult runRank(size_t rank, const void *data, size_t count) {
    EmulatedResult result;
    const int64_t n = int64_t(count);
    result.y.resize(count);
    shardrt_tensor in = shardrt::view(const_cast<void *>(data), SHARDRT_F32, {&n, 1});
    shardrt_tensor out[] = {shardrt::view<float>(result.y, {&n, 1}, SHARDRT_LOCAL),
                            shardrt::view<float>({&result.total, 1}, {}, SHARDRT_LOCAL)};
    try {
      models[rank]->run("forward", {&in, 1}, out);
    } catch (const shardrt::Error &error) {
      result.status = error.status;
      result.message = error.what();
    }
    return result;
  }
  std::vector<EmulatedResult> run(const std::vector<std::vector<float>> &x) {
    std::vector<EmulatedResult> results(models.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < models.size(); ++rank)
      threads.emplace_back(
          [&, rank] { results[rank] = runRank(rank, x[rank].data(), x[rank].size()); });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
  void expectRight(size_t n, float first) {
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), first);
    const float world = float(models.size());
    for (const EmulatedResult &result : run(std::vector<std::vector<float>>(models.size(), x))) {
      ASSERT_EQ(result.message, "");
      EXPECT_EQ(result.total, 28);
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(result.y[i], 2 * x[i] * world + world * (world - 1) / 2 + 28) << i;
    }
  }

  std::mutex mutex;
  std::string said; ///< by the models, in their log
  shardrt::Artifact artifact;
  std::vector<shardrt::Communicator> ends;
  std::vector<std::unique_ptr<shardrt::Model>> models;
};

/// The library that stands for the driver; loaded by the runtime as well.
inline void *emulatedDriver() {
  static void *driver =
      dlopen((std::string(ARTIFACTS) + "/../../lib/shardrt/libcuda-emulated.so").c_str(),
             RTLD_NOW | RTLD_LOCAL);
  return driver;
}
template <typename... Arguments> void driverCall(const char *name, Arguments... arguments) {
  auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(emulatedDriver(), name));
  EXPECT_EQ(function(arguments...), 0) << name;
}
inline uint64_t emulatedCount(const char *what) {
  auto function =
      reinterpret_cast<uint64_t (*)(const char *)>(dlsym(emulatedDriver(), "cuEmulatedCount"));
  return function(what);
}

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_DEVICE_EMULATEDRANKS_H
