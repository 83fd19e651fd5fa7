// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole way through the C ABI: libshardrt loads its library for devices, that the plugin of
// CUDA, and that the emulated device. The tests run again in each of its orders (CMakeLists.txt).
#include "runtime/include/shardrt.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace {

struct Result {
  shardrt_status status = SHARDRT_OK;
  std::string message;
  std::vector<float> y;
  float total = 0;
};

int32_t parameter(void *, const char *name, shardrt_tensor *tensor) {
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

/// The artifact for a world of so many ranks, which are threads with the emulated device.
class Ranks {
public:
  explicit Ranks(int32_t world, uint32_t flags = 0, void *stream = nullptr)
      : artifact(std::string(ARTIFACTS) + "/device_artifact_" + std::to_string(world) + ".so"),
        ends(shardrt::localCommunicators(world)) {
    for (int32_t rank = 0; rank < world; ++rank) {
      shardrt_config config = shardrt::defaultConfig();
      config.world_size = world;
      config.rank = rank;
      config.communicator = ends[size_t(rank)].get();
      config.timeout_s = 60;
      config.device = "emulated";
      config.flags = flags;
      config.stream = stream;
      config.log = [](void *, int32_t, int32_t, const char *) {};
      models.push_back(std::make_unique<shardrt::Model>(artifact.manifest(), config));
      shardrt::check(shardrt_load_parameters, models.back()->get(), parameter,
                     static_cast<void *>(nullptr));
    }
  }
  std::vector<Result> run(const std::vector<std::vector<float>> &x) {
    std::vector<Result> results(models.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < models.size(); ++rank)
      threads.emplace_back([&, rank] {
        Result &result = results[rank];
        const int64_t n = int64_t(x[rank].size());
        result.y.resize(x[rank].size());
        shardrt_tensor in = shardrt::view<const float>(x[rank], {&n, 1});
        shardrt_tensor out[] = {shardrt::view<float>(result.y, {&n, 1}, SHARDRT_LOCAL),
                                shardrt::view<float>({&result.total, 1}, {}, SHARDRT_LOCAL)};
        try {
          models[rank]->run("forward", {&in, 1}, out);
        } catch (const shardrt::Error &error) {
          result.status = error.status;
          result.message = error.what();
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    return results;
  }
  void expectRight(size_t n, float first) {
    std::vector<float> x(n);
    std::iota(x.begin(), x.end(), first);
    const float world = float(models.size());
    for (const Result &result : run(std::vector<std::vector<float>>(models.size(), x))) {
      ASSERT_EQ(result.message, "");
      EXPECT_EQ(result.total, 28);
      for (size_t i = 0; i < n; ++i)
        ASSERT_EQ(result.y[i], 2 * x[i] * world + world * (world - 1) / 2 + 28) << i;
    }
  }

  shardrt::Artifact artifact;
  std::vector<shardrt::Communicator> ends;
  std::vector<std::unique_ptr<shardrt::Model>> models;
};

} // namespace

TEST(EmulatedRun, AnswersOfEveryWorld) {
  for (int32_t world : {1, 2, 4}) {
    Ranks ranks(world);
    for (size_t n : {5, 1000, 33})
      for (int step = 0; step < 5; ++step) // eager, captured, and from graphs
        ranks.expectRight(n, float(step));
  }
}

TEST(EmulatedRun, KernelsThatFail) {
  for (int steps : {0, 5}) {
    Ranks one(1);
    for (int step = 0; step < steps; ++step)
      one.expectRight(3, 1);
    Result failed = one.run({{1, -2, 3}})[0];
    EXPECT_EQ(failed.status, SHARDRT_PROGRAM_ERROR);
    EXPECT_EQ(failed.message, "embed (model.py:3): index is out of range");
    one.expectRight(3, 1);
  }
  std::vector<Result> results = Ranks(2).run({{1, 2}, {1, -2}});
  EXPECT_EQ(results[1].message, "embed (model.py:3): index is out of range");
  EXPECT_EQ(results[0].status, SHARDRT_ABORTED);
}

TEST(EmulatedRun, Traces) {
  Ranks ranks(2, SHARDRT_RECORD_EVENTS);
  ranks.expectRight(10, 0);
  ranks.expectRight(10, 0);
  int computes = 0;
  shardrt_visit_events(
      ranks.models[0]->get(),
      [](void *context, const shardrt_event *event) {
        EXPECT_GE(event->duration_us, 0);
        *static_cast<int *>(context) += event->stream == SHARDRT_STREAM_COMPUTE;
      },
      &computes);
  EXPECT_EQ(computes, 4);
  shardrt_memory memory{};
  shardrt_memory_used(ranks.models[0]->get(), &memory);
  EXPECT_EQ(memory.scratch_bytes, 40u);
  EXPECT_GE(memory.arena_bytes, 256u);
}

TEST(EmulatedRun, TensorsAndStreamsOfTheCaller) {
  // What a program that uses the driver itself would do.
  void *driver = dlopen((std::string(ARTIFACTS) + "/../../lib/shardrt/libcuda-emulated.so").c_str(),
                        RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(driver) << dlerror();
  using Address = unsigned long long;
  auto call = [&](const char *name, auto... arguments) {
    auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(driver, name));
    EXPECT_EQ(function(arguments...), 0) << name;
  };
  int device = 0;
  void *context = nullptr, *stream = nullptr;
  call("cuInit", 0u);
  call("cuDeviceGet", &device, 0);
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream, 1u);
  Address x = 0, y = 0;
  constexpr size_t count = 10;
  const int64_t n = count, strides[] = {3};
  call("cuMemAlloc_v2", &x, 4 * count);
  call("cuMemAlloc_v2", &y, 12 * count);
  call("cuMemsetD8Async", y, static_cast<unsigned char>(0), 12 * count, stream);
  {
    Ranks ranks(1, 0, stream);
    for (int step = 0; step < 8; ++step) {
      std::vector<float> given(count), got(3 * count);
      std::iota(given.begin(), given.end(), float(step));
      auto at = [](std::vector<float> &v) { return reinterpret_cast<Address>(v.data()); };
      call("cuMemcpyAsync", x, at(given), 4 * count, stream);
      float total = 0;
      const bool inPlace = step % 4 < 2; // or in a view with a stride
      shardrt_tensor in =
          shardrt::view(reinterpret_cast<void *>(x), shardrt::typeOfDlpack(2, 32), {&n, 1});
      shardrt_tensor out[] = {shardrt::view(reinterpret_cast<void *>(y), SHARDRT_F32, {&n, 1},
                                            inPlace ? nullptr : strides),
                              shardrt::view<float>({&total, 1}, {})};
      out[0].scope = out[1].scope = SHARDRT_LOCAL;
      ranks.models[0]->run("forward", {&in, 1}, out);
      call("cuMemcpyAsync", at(got), y, (inPlace ? count : 3 * count - 2) * 4, stream);
      call("cuStreamSynchronize", stream);
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(got[inPlace ? i : 3 * i], 2 * given[i] + 28);
    }
  }
  call("cuMemFree_v2", x);
  call("cuMemFree_v2", y);
  call("cuStreamDestroy_v2", stream);
  call("cuDevicePrimaryCtxRelease_v2", device);
  dlclose(driver);
}

TEST(EmulatedRun, TypesOfDlpack) {
  EXPECT_EQ(shardrt::typeOfDlpack(4, 16), SHARDRT_BF16);
  EXPECT_EQ(shardrt::typeOfDlpack(2, 16), SHARDRT_F16);
  EXPECT_EQ(shardrt::typeOfDlpack(0, 64), SHARDRT_I64);
  EXPECT_EQ(shardrt::typeOfDlpack(6, 8), SHARDRT_BOOL);
  EXPECT_EQ(shardrt::typeOfDlpack(1, 32), 0);
  EXPECT_EQ(shardrt::typeOfDlpack(2, 32, 4), 0);
}

TEST(EmulatedRun, OldConfigurations) {
  // As a caller that was compiled against 2.1 makes one: there is no device in it.
  shardrt_config config;
  std::memset(&config, 0xff, sizeof config);
  (shardrt_config_init)(&config);
  EXPECT_EQ(config.struct_bytes, offsetof(shardrt_config, device));
  EXPECT_NE(config.device, nullptr) << "nothing is written behind what the caller has";
  shardrt::Artifact artifact(std::string(ARTIFACTS) + "/device_artifact_1.so");
  try {
    shardrt::Model model(artifact.manifest(), config);
    ADD_FAILURE() << "nobody has asked for the emulated device";
  } catch (const shardrt::Error &error) {
    EXPECT_NE(std::string(error.what()).find("compiled for the emulated device"), std::string::npos)
        << error.what();
  }
}
