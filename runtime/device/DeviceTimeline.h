// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When a device did what, for the log of events.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICETIMELINE_H
#define SHARDC_RUNTIME_DEVICE_DEVICETIMELINE_H

#include "runtime/device/Device.h"
#include "runtime/support/Events.h"

namespace shardc::rt {

/// Marks are timed events on streams. They become times of the host when a run is complete.
class DeviceTimeline {
public:
  DeviceTimeline(const Device &device, EventLog &events) : device(device), events(events) {}

  bool enabled() const { return events.enabled; }
  /// A moment on a stream; its number.
  size_t mark(void *stream);
  /// Something of a lane (SHARDRT_STREAM_...) went from one mark to another.
  void span(int32_t lane, const char *name, const char *location, size_t begin, size_t end,
            int64_t bytes);
  /// Adds everything to the log: the mark `last` has just been reached. Forgets all marks.
  void flush(size_t last);
  void clear();

private:
  struct Span {
    int32_t lane;
    const char *name, *location;
    size_t begin, end;
    int64_t bytes;
  };
  const Device &device;
  EventLog &events;
  std::vector<DeviceObject> marks; ///< the first `used` of them are
  size_t used = 0;
  std::vector<Span> spans;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_DEVICE_DEVICETIMELINE_H
