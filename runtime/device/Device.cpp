// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/Device.h"

#include "runtime/process/LoadPlugin.h"
#include "runtime/support/Types.h"

#include <chrono>
#include <thread>
#include <utility>

namespace shardc::rt {

DevicePlugin DevicePlugin::load(const std::string &kind) {
  FoundPlugin found =
      findPlugin("plugin for devices", kind, "shardrt_device_query", processEnvironment());
  DevicePlugin plugin{found.path, reinterpret_cast<shardrt_device_query_fn>(found.query)(),
                      std::move(found.library)};
  plugin.check();
  return plugin;
}

void DevicePlugin::check() const {
  Problems problems;
  if (!functions)
    problems.add("shardrt_device_query returned null");
  else if (functions->struct_bytes != sizeof *functions)
    problems.add("its table has " + std::to_string(functions->struct_bytes) +
                 " bytes, that of this runtime " + std::to_string(sizeof *functions));
  else if (functions->version != SHARDRT_DEVICE_VERSION)
    problems.add("its interface has version " + std::to_string(functions->version) +
                 ", that of this runtime " + std::to_string(SHARDRT_DEVICE_VERSION));
  else {
    // All pointers between the name and what may be missing are functions.
    auto *begin = reinterpret_cast<const void *const *>(&functions->name);
    auto *end = reinterpret_cast<const void *const *>(&functions->communication);
    for (auto *entry = begin; entry != end; ++entry)
      if (!*entry)
        problems.add("function " + std::to_string(entry - begin) + " of its table is null");
  }
  problems.raise(SHARDRT_INCOMPATIBLE, "plugin for devices " + path);
}

Device::Device(DevicePlugin loaded, const shardrt_device_options &asked)
    : plugin(std::move(loaded)) {
  shardrt_device_options options = asked;
  options.host = this;
  options.must_stop = [](void *host) -> int32_t {
    auto &self = *static_cast<const Device *>(host);
    try {
      if (self.whileWaiting)
        self.whileWaiting();
      return 0;
    } catch (...) {
      self.stopped = std::current_exception();
      return 1;
    }
  };
  options.warn = [](void *host, const char *message) {
    auto &self = *static_cast<const Device *>(host);
    if (self.warn)
      self.warn(message);
  };
  on([&](auto &table, void *, char *message) {
    return table.open(&options, &opened, &known, message);
  });
}

Device::~Device() {
  if (!stuck)
    plugin.functions->close(opened);
}

void Device::fail(shardrt_status status, const char *message) const {
  throw Failure(status, *message ? message : statusName(status));
}

DeviceObject Device::own(void (*release)(void *, void *), void *object) const {
  return DeviceObject(object, DeviceRelease{release, opened, &stuck});
}

DeviceObject Device::makeStream() const {
  void *made = nullptr;
  on([&](auto &table, void *device, char *message) {
    return table.stream_create(device, &made, message);
  });
  return own(plugin.functions->stream_destroy, made);
}

DeviceObject Device::makeEvent(bool timed) const {
  void *made = nullptr;
  on([&](auto &table, void *device, char *message) {
    return table.event_create(device, timed, &made, message);
  });
  return own(plugin.functions->event_destroy, made);
}

DeviceObject Device::makePinned(size_t bytes) const {
  void *made = nullptr;
  on([&](auto &table, void *device, char *message) {
    return table.allocate_pinned(device, bytes, &made, message);
  });
  return own(plugin.functions->release_pinned, made);
}

DeviceObject Device::ownGraph(void *graph) const {
  return own(plugin.functions->graph_destroy, graph);
}

void Device::record(const DeviceObject &event, void *stream) const {
  on([&](auto &table, void *device, char *message) {
    return table.event_record(device, event.get(), stream, message);
  });
}

void Device::wait(void *stream, const DeviceObject &event) const {
  on([&](auto &table, void *device, char *message) {
    return table.stream_wait_event(device, stream, event.get(), message);
  });
}

bool Device::done(const DeviceObject &event) const {
  int32_t done = 0;
  on([&](auto &table, void *device, char *message) {
    return table.event_query(device, event.get(), &done, message);
  });
  return done != 0;
}

void Device::synchronize(const DeviceObject &event) const {
  on([&](auto &table, void *device, char *message) {
    return table.event_synchronize(device, event.get(), message);
  });
}

void Device::synchronizeStream(void *stream) const {
  on([&](auto &table, void *device, char *message) {
    return table.stream_synchronize(device, stream, message);
  });
}

bool Device::settle(void *stream, std::chrono::steady_clock::time_point until) const {
  if (stuck)
    return false;
  DeviceObject event = makeEvent();
  record(event, stream);
  while (!done(event)) {
    if (std::chrono::steady_clock::now() >= until) {
      stuck = true;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void Device::multiply(const shardrt_gemm &gemm, void *stream) const {
  try {
    on([&](auto &table, void *device, char *message) {
      return table.gemm(device, &gemm, stream, message);
    });
  } catch (const Failure &) {
    if (stopped)
      std::rethrow_exception(std::exchange(stopped, nullptr));
    throw;
  }
}

void Device::copy(void *to, const void *from, size_t bytes, void *stream) const {
  on([&](auto &table, void *device, char *message) {
    return table.copy(device, to, from, bytes, stream, message);
  });
}

bool Device::isOnDevice(const void *memory) const {
  return plugin.functions->place(opened, memory) != SHARDRT_PLACE_HOST;
}

} // namespace shardc::rt
