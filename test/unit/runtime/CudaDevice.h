// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plugin of CUDA on the emulated device, for tests of what it does there.
#ifndef SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H
#define SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H

#include "runtime/device/Device.h"

#include <dlfcn.h>
#include <filesystem>
#include <gtest/gtest.h>

namespace test {

constexpr const char *emulatedLibrary = "libcuda-emulated.so";

/// Whether it was built: it needs the compiler's LLVM.
inline bool hasEmulatedDevice() {
  return std::filesystem::exists(std::string(PLUGINS "/") + emulatedLibrary);
}

class CudaDevice {
public:
  explicit CudaDevice(int ordinal = 0)
      : device(load(), options(ordinal)), stream(device.makeStream()) {}

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
    auto find = symbol<const char *(size_t *)>("cuEmulatedReports");
    return find(nullptr);
  }
  static void clearReports() { symbol<void()>("cuEmulatedClearReports")(); }
  static void setOrder(const char *order) {
    symbol<int(unsigned)>("cuInit")(0);
    ASSERT_EQ(symbol<int(const char *)>("cuEmulatedSetOrder")(order), 0) << order;
  }

  template <typename Function> static Function *symbol(const char *name) {
    static void *library = dlopen((std::string(PLUGINS "/") + emulatedLibrary).c_str(), RTLD_NOW);
    return reinterpret_cast<Function *>(library ? dlsym(library, name) : nullptr);
  }

  shardc::rt::Device device;
  const shardc::rt::DeviceObject stream;

private:
  static shardc::rt::DevicePlugin load() {
    shardc::rt::DevicePlugin plugin;
    plugin.path = PLUGINS "/libshardrt_cuda.so";
    void *library = dlopen(plugin.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      throw shardc::rt::Failure(SHARDRT_NOT_FOUND, dlerror());
    plugin.functions =
        reinterpret_cast<shardrt_device_query_fn>(dlsym(library, "shardrt_device_query"))();
    return plugin;
  }
  static shardrt_device_options options(int ordinal) {
    shardrt_device_options options{};
    options.struct_bytes = sizeof options;
    options.ordinal = ordinal;
    options.library = emulatedLibrary;
    return options;
  }

  std::vector<shardc::rt::DeviceObject> blocks;
};

/// Skips where there is no emulated device; no test leaves a report behind.
class OnEmulatedDevice : public ::testing::Test {
protected:
  void SetUp() override {
    if (!hasEmulatedDevice())
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

/// A variable of the environment, for as long as this lives.
struct EnvironmentVariable {
  EnvironmentVariable(const char *name, const std::string &value) : name(name) {
    setenv(name, value.c_str(), 1);
  }
  ~EnvironmentVariable() { unsetenv(name); }
  EnvironmentVariable(const EnvironmentVariable &) = delete;
  const char *const name;
};

} // namespace test

#endif // SHARDC_TEST_UNIT_RUNTIME_CUDADEVICE_H
