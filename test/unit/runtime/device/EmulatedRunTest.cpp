// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole way through the C ABI: libshardrt loads its library for devices, that the plugin of
// CUDA, and that the emulated device. The tests run again in each of its orders (CMakeLists.txt).
#include "runtime/include/shardrt_dlpack.h"
#include "test/unit/runtime/device/EmulatedRanks.h"

#include <algorithm>

using Ranks = test::EmulatedRanks;
using Result = test::EmulatedResult;

namespace {

using Address = unsigned long long;

void call(const char *name, auto... arguments) { test::driverCall(name, arguments...); }

/// A program that uses the driver itself, with a stream of its own on the first device.
struct Caller {
  Caller() {
    call("cuInit", 0u);
    call("cuDeviceGet", &device, 0);
    call("cuDevicePrimaryCtxRetain", &context, device);
    call("cuCtxSetCurrent", context);
    call("cuStreamCreate", &stream, 1u);
  }
  ~Caller() {
    call("cuStreamDestroy_v2", stream);
    call("cuDevicePrimaryCtxRelease_v2", device);
  }
  Caller(const Caller &) = delete;

  int device = 0;
  void *context = nullptr, *stream = nullptr;
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
  EXPECT_EQ(results[0].status, SHARDRT_ABORTED) << "it has what came of a kernel that failed";
  // The first to say so ends the other, which does not wait for it.
  for (const Result &result : Ranks(2).run({{1, -2}, {1, -2}}))
    EXPECT_TRUE(result.status == SHARDRT_PROGRAM_ERROR || result.status == SHARDRT_ABORTED)
        << result.message;
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
  ASSERT_TRUE(test::emulatedDriver()) << dlerror();
  Caller caller;
  void *stream = caller.stream;
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
      int64_t shape[] = {n}, apart[] = {strides[0]};
      shardrt_dl_tensor source{reinterpret_cast<void *>(x),
                               {SHARDRT_DL_CUDA, 0},
                               1,
                               {SHARDRT_DL_FLOAT, 32, 1},
                               shape,
                               nullptr,
                               0};
      // The address of the output is an offset from that of the input.
      shardrt_dl_tensor wanted = source;
      wanted.byte_offset = y - x;
      wanted.strides = inPlace ? nullptr : apart;
      shardrt_tensor in{}, out[] = {{}, shardrt::view<float>({&total, 1}, {})};
      shardrt_dlpack_use use{SHARDRT_DL_CUDA, 0, SHARDRT_GLOBAL, 0};
      ASSERT_EQ(shardrt_dlpack_view(&source, &use, &in, nullptr, 0), SHARDRT_OK);
      use.is_output = 1;
      ASSERT_EQ(shardrt_dlpack_view(&wanted, &use, &out[0], nullptr, 0), SHARDRT_OK);
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
}

// It runs nothing, and still gets outputs, which go where its caller's stream may be at work.
TEST(EmulatedRun, ARankOutsideOfTheMeshFollowsItsCaller) {
  ASSERT_TRUE(test::emulatedDriver()) << dlerror();
  Caller caller;
  void *stream = caller.stream;
  constexpr size_t count = 10;
  const int64_t n = count;
  Address y = 0;
  call("cuMemAlloc_v2", &y, 4 * count);
  for (const char *order : {"eager", "lazy", "random:3"}) {
    call("cuEmulatedSetOrder", order);
    Ranks ranks(2, 0, stream, 60, "outside");
    for (int32_t scope : {SHARDRT_GLOBAL, SHARDRT_ROOT})
      for (int step = 0; step < 3; ++step) {
        std::vector<float> x(count), got(count), elsewhere(count);
        std::iota(x.begin(), x.end(), float(step));
        float totals[2] = {};
        auto run = [&](size_t rank) {
          void *const data = rank == 0 ? reinterpret_cast<void *>(y) : elsewhere.data();
          shardrt_tensor in = shardrt::view<const float>(x, {&n, 1}),
                         out[] = {shardrt::view(data, SHARDRT_F32, {&n, 1}, nullptr, scope),
                                  shardrt::view<float>({&totals[rank], 1}, {}, scope)};
          if (scope == SHARDRT_ROOT && rank != 0)
            out[0].data = out[1].data = nullptr;
          try {
            ranks.models[rank]->run("forward", {&in, 1}, out);
          } catch (const shardrt::Error &error) {
            ADD_FAILURE() << "rank " << rank << ": " << error.what();
          }
        };
        call("cuCtxSetCurrent", caller.context);
        call("cuMemsetD8Async", y, static_cast<unsigned char>(0), 4 * count, stream);
        std::thread other([&] { run(1); });
        run(0);
        other.join();
        call("cuCtxSetCurrent", caller.context);
        call("cuMemcpyAsync", reinterpret_cast<Address>(got.data()), y, 4 * count, stream);
        call("cuStreamSynchronize", stream);
        EXPECT_EQ(totals[0], 28);
        for (size_t i = 0; i < count; ++i)
          EXPECT_EQ(got[i], 2 * x[i] + 1 + 28) << order << ", scope " << scope << ", " << i;
      }
  }
  call("cuEmulatedSetOrder", "eager");
  call("cuMemFree_v2", y);
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
