// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Operations.h"

namespace shardc::plugin::cuda {

namespace {

/// A failed allocation says what there is.
[[noreturn]] void failAllocation(const Device &device, Result result, const std::string &what,
                                 uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes of " + what;
  size_t unused = 0, all = 0;
  if (result == resultOutOfMemory && device.driver().memoryInfo(&unused, &all) == resultSuccess)
    text += " (the device has " + std::to_string(all) + ", of which " + std::to_string(unused) +
            " are free)";
  device.check(result, text);
  throw Failure{SHARDRT_INTERNAL, text};
}

shardrt_status allocate(void *handle, uint64_t bytes, void **memory, char *message) {
  return on(handle, message, [&](Device &device) {
    Pointer pointer = 0;
    if (Result result = device.driver().allocate(&pointer, size_t(bytes)))
      failAllocation(device, result, "the device's memory", bytes);
    *memory = reinterpret_cast<void *>(pointer);
  });
}

void release(void *handle, void *memory) {
  ignoring(handle, [&](Device &device) { device.driver().release(address(memory)); });
}

shardrt_status allocatePinned(void *handle, uint64_t bytes, void **memory, char *message) {
  return on(handle, message, [&](Device &device) {
    if (Result result = device.driver().allocatePinned(memory, size_t(bytes), hostAllocPortable))
      failAllocation(device, result, "pinned memory of the host", bytes);
  });
}

void releasePinned(void *handle, void *memory) {
  ignoring(handle, [&](Device &device) { device.driver().releasePinned(memory); });
}

int32_t place(void *handle, const void *memory) {
  int32_t where = SHARDRT_PLACE_HOST;
  ignoring(handle, [&](Device &device) {
    unsigned kind = 0, managed = 0;
    int ordinal = 0;
    // An error says that the driver does not know the memory: it is plain memory of the host.
    if (device.driver().pointerAttribute(&kind, pointerMemoryType, address(memory)))
      return;
    device.driver().pointerAttribute(&managed, pointerIsManaged, address(memory));
    if (managed) {
      where = SHARDRT_PLACE_DEVICE;
      return;
    }
    if (kind != memoryDevice)
      return;
    device.check(device.driver().pointerAttribute(&ordinal, pointerDeviceOrdinal, address(memory)),
                 "asking whose memory it is");
    where = ordinal == device.ordinal() ? SHARDRT_PLACE_DEVICE : SHARDRT_PLACE_OTHER;
  });
  return where;
}

shardrt_status copy(void *handle, void *to, const void *from, uint64_t bytes, void *stream,
                    char *message) {
  return on(handle, message, [&](Device &device) {
    if (bytes > 0)
      device.check(
          device.driver().copy(address(to), address(from), size_t(bytes), streamOf(stream)),
          "a copy of " + std::to_string(bytes) + " bytes");
  });
}

shardrt_status copyRows(void *handle, void *to, uint64_t toPitch, const void *from,
                        uint64_t fromPitch, uint64_t bytes, uint64_t rows, void *stream,
                        char *message) {
  return on(handle, message, [&](Device &device) {
    if (bytes == 0 || rows == 0)
      return;
    device.copyRows(to, size_t(toPitch), from, size_t(fromPitch), size_t(bytes), size_t(rows),
                    streamOf(stream));
  });
}

shardrt_status fill(void *handle, void *to, uint8_t value, uint64_t bytes, void *stream,
                    char *message) {
  return on(handle, message, [&](Device &device) {
    if (bytes > 0)
      device.check(device.driver().fill(address(to), value, size_t(bytes), streamOf(stream)),
                   "filling memory");
  });
}

} // namespace

void addMemory(shardrt_device_plugin &table) {
  table.allocate = allocate;
  table.release = release;
  table.allocate_pinned = allocatePinned;
  table.release_pinned = releasePinned;
  table.place = place;
  table.copy = copy;
  table.copy_rows = copyRows;
  table.fill = fill;
}

} // namespace shardc::plugin::cuda
