// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors between the caller's memory, wherever it is, and that of a device.
#include "runtime/support/Copy.h"
#include "test/unit/runtime/device/FakeModels.h"

#include <algorithm>

using namespace shardc::rt;
using test::DeviceRun, test::FakeArtifact, test::FakeDevice, test::FakeModels, test::iota;

namespace {

using Sizes = std::vector<int64_t>;

Slice sliceOf(const std::string &layout, const Sizes &extents, int64_t axis, int64_t index) {
  shardc::Mesh mesh;
  mesh.axes.push_back({"tp", axis});
  return Slice::make(*shardc::parseLayout(mesh, layout).value, extents, shardc::Coordinate{index});
}

struct Memory {
  Memory() : memory(device(), Allocator{}, nullptr) {}
  explicit Memory(std::shared_ptr<const Device> device, void *stream)
      : memory(std::move(device), Allocator{}, stream) {}
  static std::shared_ptr<const Device> device() { return test::fakeDevice(); }
  Buffer buffer(size_t bytes) { return {memory.allocator(), bytes, 64, "a test"}; }
  /// What is in memory of the device.
  std::vector<float> read(const void *data, size_t count) {
    std::vector<float> out(count);
    Slice all = sliceOf("[R]", {int64_t(count)}, 1, 0);
    const int64_t one = 1;
    memory.give(out.data(), &one, all, data, sizeof(float));
    return out;
  }
  DeviceMemory memory;
};

std::vector<float> packed(const Slice &slice, const float *data, const int64_t *strides) {
  std::vector<float> out(size_t(slice.elements()));
  slice.extract(out.data(), data, strides, sizeof(float));
  return out;
}

} // namespace

TEST_F(DeviceRun, SlicesOfTheHost) {
  Memory memory;
  // Of several pinned pieces, of one, and of nothing.
  for (auto [layout, extents] : {std::pair("[S(0)]", Sizes{40, 300, 700}),
                                 {"[S(2, blocks = 2)]", Sizes{16, 1000, 64}},
                                 {"[S(1)]", Sizes{3, 5}},
                                 {"[R]", Sizes{}},
                                 {"[S(0)]", Sizes{1, 7}}})
    for (int64_t rank : {0, 1}) {
      Slice slice = sliceOf(layout, extents, 2, rank);
      int64_t count = 1;
      for (int64_t extent : extents)
        count *= extent;
      std::vector<float> x = iota(size_t(count));
      Sizes strides(extents.size());
      denseStrides(extents, strides.data());
      Buffer local = memory.buffer(size_t(slice.elements()) * 4);
      memory.memory.take(local.data(), slice, x.data(), strides.data(), 4);
      std::vector<float> wanted = packed(slice, x.data(), strides.data());
      if (!wanted.empty()) {
        EXPECT_TRUE(memory.memory.holds(local.data(), wanted.data(), wanted.size() * 4));
        wanted.back() += 1;
        EXPECT_FALSE(memory.memory.holds(local.data(), wanted.data(), wanted.size() * 4));
      }
      std::vector<float> back(x.size(), -1), expected(x.size(), -1);
      slice.insert(expected.data(), strides.data(), packed(slice, x.data(), strides.data()).data(),
                   4);
      memory.memory.give(back.data(), strides.data(), slice, local.data(), 4);
      EXPECT_EQ(back, expected);
    }
}

TEST_F(DeviceRun, ViewsOfMemoryOnTheDevice) {
  Memory memory;
  const std::vector<float> x = iota(24 * 30);
  Buffer whole = memory.buffer(x.size() * 4);
  const int64_t one = 1;
  memory.memory.take(whole.data(), sliceOf("[R]", {int64_t(x.size())}, 1, 0), x.data(), &one, 4);
  auto *first = reinterpret_cast<float *>(whole.data());
  struct View {
    Sizes extents, strides;
    int64_t offset;
  };
  for (const View &view : {View{{24, 30}, {30, 1}, 0},       // dense
                           View{{24, 10}, {30, 1}, 7},       // rows
                           View{{30, 24}, {1, 30}, 0},       // transposed
                           View{{4, 5, 6}, {180, 30, 5}, 2}, // nothing is dense
                           View{{24, 30}, {-30, -1}, 719},   // backwards
                           View{{5, 30}, {0, 1}, 60},        // repeated
                           View{{3, 1, 2}, {1, 77, 0}, 4}, View{{}, {}, 5}})
    for (int64_t rank : {0, 1}) {
      bool isScalar = view.extents.empty();
      Slice slice = sliceOf(isScalar ? "[R]" : "[S(0)]", view.extents, 2, rank);
      std::vector<float> wanted = packed(slice, x.data() + view.offset, view.strides.data());
      Buffer local = memory.buffer(wanted.size() * 4);
      memory.memory.take(local.data(), slice, first + view.offset, view.strides.data(), 4);
      EXPECT_EQ(memory.read(local.data(), wanted.size()), wanted);
      if (std::ranges::count(view.strides, 0) > 0)
        continue; // an output does not overlap itself
      Buffer copy = memory.buffer(x.size() * 4);
      memory.memory.take(copy.data(), sliceOf("[R]", {int64_t(x.size())}, 1, 0),
                         std::vector<float>(x.size(), -1).data(), &one, 4);
      memory.memory.give(reinterpret_cast<float *>(copy.data()) + view.offset, view.strides.data(),
                         slice, local.data(), 4);
      std::vector<float> expected(x.size(), -1);
      slice.insert(expected.data() + view.offset, view.strides.data(), wanted.data(), 4);
      EXPECT_EQ(memory.read(copy.data(), x.size()), expected);
    }
}

TEST_F(DeviceRun, TheCallersStreamComesFirst) {
  auto device = Memory::device();
  FakeDevice &fake = *FakeDevice::newest.load();
  DeviceObject stream = device->makeStream();
  Memory memory(device, stream.get());
  Buffer from = memory.buffer(12), to = memory.buffer(12);
  fake.push(stream.get(), [&] { std::fill_n(reinterpret_cast<float *>(from.data()), 3, 7.0f); });
  const int64_t one = 1;
  memory.memory.take(to.data(), sliceOf("[R]", {3}, 1, 0), from.data(), &one, 4);
  EXPECT_EQ(memory.read(to.data(), 3), (std::vector<float>{7, 7, 7}));
}

TEST_F(DeviceRun, TensorsOfTheCallerOnTheDevice) {
  FakeDevice::Stream callers;
  void *const stream = &callers;
  char message[SHARDRT_MESSAGE_BYTES];
  const shardrt_device_plugin &table = FakeDevice::table();
  {
    FakeModels models(1, [&](shardrt_config &config) { config.stream = stream; });
    FakeDevice &fake = *models.devices[0];
    void *x = nullptr, *y = nullptr;
    table.allocate(&fake, 4 * 6, &x, message);
    table.allocate(&fake, 4 * 12, &y, message);
    for (int step = 0; step < 12; ++step) {
      fake.push(stream, [=] {
        for (int i = 0; i < 6; ++i)
          static_cast<float *>(x)[i] = float(i + step);
      });
      const int64_t n = 6, everyOther = 2;
      shardrt_tensor in = shardrt::view(x, SHARDRT_F32, {&n, 1});
      float total = 0;
      // In place, and in a view with a stride.
      bool inPlace = step % 4 < 2;
      shardrt_tensor out[] = {
          shardrt::view(y, SHARDRT_F32, {&n, 1}, inPlace ? nullptr : &everyOther, SHARDRT_LOCAL),
          shardrt::view<float>({&total, 1}, {}, SHARDRT_LOCAL)};
      models.models[0]->run("forward", {&in, 1}, out);
      fake.touch([&] {
        for (int i = 0; i < 6; ++i)
          EXPECT_EQ(static_cast<float *>(y)[inPlace ? i : 2 * i],
                    FakeArtifact::expected(float(i + step), 1));
      });
      EXPECT_EQ(total, 28);
    }
    EXPECT_GT(FakeDevice::graphLaunches, 0);
    models.models.clear();
    EXPECT_EQ(FakeDevice::open, 0);
    FakeDevice::allocations -= 2; // they went with the device
  }
}
