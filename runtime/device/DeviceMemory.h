// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory of a device as that of a program. What the caller has on the host goes through pinned
// memory; what is on a device is copied there.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICEMEMORY_H
#define SHARDC_RUNTIME_DEVICE_DEVICEMEMORY_H

#include "runtime/device/Device.h"
#include "runtime/executor/ProgramMemory.h"

#include <array>
#include <span>

namespace shardc::rt {

class DeviceMemory final : public ProgramMemory {
public:
  /// `callers`: gives memory of the device, if it has functions. `callerStream`: what the caller
  /// has put there comes before everything of the program; null: there is none.
  DeviceMemory(std::shared_ptr<const Device> device, const Allocator &callers, void *callerStream);
  ~DeviceMemory() override;

  const Allocator &allocator() const override { return callers.alloc ? callers : own; }
  bool reaches(const void *data) const override;
  void take(void *to, const Slice &part, const void *from, const int64_t *strides,
            int64_t elementBytes) override;
  void give(void *to, const int64_t *strides, const Slice &part, const void *from,
            int64_t elementBytes) override;
  bool holds(const void *data, const void *bytes, size_t count) const override;

  /// Copies and the program's computations run there, in order.
  void *stream() const { return compute.get(); }
  /// Puts what comes behind what the caller's stream has now.
  void followCaller() const;

  const std::shared_ptr<const Device> device;

private:
  /// Pinned memory, and the event behind the last copy that uses it.
  struct Half {
    DeviceObject memory, copied;
    size_t bytes = 0;
    bool inUse = false;
  };
  Half &nextHalf(size_t bytes) const;
  void waitFor(Half &half) const;
  void copyDown(Half &half, const void *from, size_t bytes) const;
  void copyOnDevice(char *to, const int64_t *toStrides, const char *from,
                    const int64_t *fromStrides, std::span<const int64_t> extents,
                    int64_t elementBytes) const;

  static void *allocate(void *context, size_t bytes, size_t alignment);
  static void release(void *context, void *memory, size_t bytes);

  const Allocator callers, own;
  const DeviceObject compute;
  void *const callerStream;
  const DeviceObject callerEvent;
  mutable std::array<Half, 2> halves;
  mutable size_t last = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICEMEMORY_H
