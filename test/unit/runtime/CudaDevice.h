// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plugin of CUDA on the emulated device, for tests of what it does there. A copy of the tests
// runs on a real device (scripts/gpu.sh): SHARDC_TEST_GPU has its number, SHARDC_TEST_PLUGINS the
// folder of the plugins.
#ifndef SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H
#define SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H

#include "runtime/device/Device.h"
#include "test/unit/runtime/EnvironmentVariable.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>

namespace test {

constexpr const char *emulatedLibrary = "libcuda-emulated.so";

/// Where the plugins are: those of the build, if nothing else is said.
inline std::string pluginPath(const char *name) {
  const char *folder = std::getenv("SHARDC_TEST_PLUGINS");
  return std::string(folder && *folder ? folder : PLUGINS) + "/" + name;
}

/// The number of the real device that the tests are to run on.
inline std::optional<int> realDevice() {
  const char *number = std::getenv("SHARDC_TEST_GPU");
  if (!number || !*number)
    return std::nullopt;
  return std::atoi(number);
}

/// Whether there is one to test on: the emulated one needs the compiler's LLVM.
inline bool hasDevice() {
  return realDevice() || std::filesystem::exists(pluginPath(emulatedLibrary));
}

/// A device of the plugin. Ranks share the real one.
inline shardrt_device_options deviceOptions(int ordinal = 0) {
  shardrt_device_options options{};
  options.struct_bytes = sizeof options;
  options.ordinal = realDevice().value_or(ordinal);
  options.library = realDevice() ? nullptr : emulatedLibrary;
  return options;
}

class CudaDevice {
public:
  explicit CudaDevice(int ordinal = 0)
      : device(load(), deviceOptions(ordinal)), stream(device.makeStream()) {}

  /// Memory of the device with these bytes; released with the device.
  char *put(const void *data, size_t bytes) {
    void *memory = nullptr;
    device.on([&](const shardrt_device_plugin &table, void *handle, char *message) {
      return table.allocate(handle, std::max<size_t>(bytes, 1), &memory, message);
    });
    blocks.emplace_back(memory, shardc::rt::DeviceRelease{table().release, device.handle()});
    if (data && bytes > 0)
      device.copy(memory, data, bytes, stream.get());
    device.synchronizeStream(stream.get());
    return static_cast<char *>(memory);
  }
  void get(void *to, const void *from, size_t bytes) {
    if (bytes > 0)
      device.copy(to, from, bytes, stream.get());
    device.synchronizeStream(stream.get());
  }
  void releaseAll() { blocks.clear(); }

  const shardrt_device_plugin &table() const { return *device.plugin.functions; }

  /// What the emulated device has found so far.
  static std::string reports() {
    if (realDevice())
      return "";
    auto find = symbol<const char *(size_t *)>("cuEmulatedReports");
    return find(nullptr);
  }
  static void clearReports() {
    if (!realDevice())
      symbol<void()>("cuEmulatedClearReports")();
  }
  /// A real device has an order of its own.
  static void setOrder(const char *order) {
    if (realDevice())
      return;
    symbol<int(unsigned)>("cuInit")(0);
    ASSERT_EQ(symbol<int(const char *)>("cuEmulatedSetOrder")(order), 0) << order;
  }

  template <typename Function> static Function *symbol(const char *name) {
    static void *library = dlopen(pluginPath(emulatedLibrary).c_str(), RTLD_NOW);
    return reinterpret_cast<Function *>(library ? dlsym(library, name) : nullptr);
  }

  shardc::rt::Device device;
  const shardc::rt::DeviceObject stream;

private:
  static shardc::rt::DevicePlugin load() {
    shardc::rt::DevicePlugin plugin;
    plugin.path = pluginPath("libshardrt_cuda.so");
    void *library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw shardc::rt::Failure(SHARDRT_NOT_FOUND, dlerror());
    plugin.functions =
        reinterpret_cast<shardrt_device_query_fn>(dlsym(library, "shardrt_device_query"))();
    return plugin;
  }

  std::vector<shardc::rt::DeviceObject> blocks;
};

/// Skips where there is no device; no test leaves a report of the emulated one behind.
class OnDevice : public ::testing::Test {
protected:
  void SetUp() override {
    if (!hasDevice())
      GTEST_SKIP() << "the emulated device was not built";
    CudaDevice::clearReports();
  }
  void TearDown() override {
    if (!IsSkipped()) {
      EXPECT_EQ(CudaDevice::reports(), expectedReports);
      CudaDevice::clearReports();
    }
  }
  std::string expectedReports;
};

/// What needs a device for each rank, or mistakes that only the emulated one makes.
class OnEmulatedDevice : public OnDevice {
protected:
  void SetUp() override {
    if (realDevice())
      GTEST_SKIP() << "for the emulated device";
    OnDevice::SetUp();
  }
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H
