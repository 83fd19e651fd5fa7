// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device behind a plugin's table (runtime/include/shardrt_device.h): failures are thrown, and
// what is made of it releases itself.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICE_H
#define SHARDC_RUNTIME_DEVICE_DEVICE_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/include/shardrt_device.h"
#include "runtime/support/Failure.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>

namespace shardc::rt {

/// A plugin that is loaded.
struct DevicePlugin {
  std::string path;
  const shardrt_device_plugin *functions = nullptr;
  std::shared_ptr<void> library; ///< loaded as long as this lives; null: not loaded by dlopen

  /// That of a kind of target. Throws Failure as loadPlugin does.
  static DevicePlugin load(const std::string &kind);
  /// Throws Failure (SHARDRT_INCOMPATIBLE) with everything that is wrong with the table.
  void check() const;
};

/// A stream, an event, a graph, a module or pinned memory: whatever the table releases by a
/// function of the device and its handle.
struct DeviceRelease {
  void (*function)(void *device, void *object) = nullptr;
  void *device = nullptr;
  const std::atomic<bool> *stuck = nullptr; ///< of the device; nothing is released then
  void operator()(void *object) const {
    if (!stuck || !*stuck)
      function(device, object);
  }
};
using DeviceObject = std::unique_ptr<void, DeviceRelease>;

/// One rank's device. It is used by two threads at most, as the table allows.
class Device {
public:
  Device(DevicePlugin plugin, const shardrt_device_options &options);
  ~Device();
  Device(const Device &) = delete;

  /// Seconds for which work that was given up is waited for when everything ends.
  static inline std::atomic<double> patience{10};

  /// Called while the plugin waits for a stream by itself, in `multiply`: what it throws ends the
  /// wait, and is thrown there.
  mutable std::function<void()> whileWaiting;
  /// Gets what the plugin warns of.
  mutable std::function<void(const std::string &)> warn;

  const DevicePlugin plugin;
  const shardrt_device_facts &facts() const { return known; }
  void *handle() const { return opened; }

  DeviceObject makeStream() const;
  DeviceObject makeEvent(bool timed = false) const;
  DeviceObject makePinned(size_t bytes) const;
  /// What the table calls a graph, which captureEnd has made; null: none.
  DeviceObject ownGraph(void *graph) const;

  void record(const DeviceObject &event, void *stream) const;
  void wait(void *stream, const DeviceObject &event) const;
  bool done(const DeviceObject &event) const;
  void synchronize(const DeviceObject &event) const;
  void synchronizeStream(void *stream) const;
  /// Waits until everything on the stream is done, but no longer than until then. If it is not done
  /// then, the device is stuck: false, and nothing is released any more, which would wait for it.
  bool settle(void *stream, std::chrono::steady_clock::time_point until) const;
  /// `patience` as the clock has it.
  static std::chrono::nanoseconds longestWait() {
    return std::chrono::nanoseconds(int64_t(1e9 * patience.load()));
  }
  bool isStuck() const { return stuck; }
  /// Others have work on its memory that does not end: the same.
  void setStuck() const { stuck = true; }
  void multiply(const shardrt_gemm &gemm, void *stream) const;
  void copy(void *to, const void *from, size_t bytes, void *stream) const;
  /// For memory that is the host's alone: false.
  bool isOnDevice(const void *memory) const;

  /// Calls a function of the table, of which `call` gets the room for its message; throws what it
  /// says.
  template <typename Call> void on(Call call) const {
    char message[SHARDRT_MESSAGE_BYTES];
    message[0] = 0;
    if (shardrt_status status = call(*plugin.functions, opened, message))
      fail(status, message);
  }

private:
  [[noreturn]] void fail(shardrt_status status, const char *message) const;
  DeviceObject own(void (*release)(void *, void *), void *object) const;

  void *opened = nullptr;
  shardrt_device_facts known{};
  mutable std::atomic<bool> stuck{false};
  mutable std::exception_ptr stopped; ///< by whileWaiting
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICE_H
