// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/DeviceTimeline.h"

namespace shardc::rt {

size_t DeviceTimeline::mark(void *stream) {
  if (used == marks.size())
    marks.push_back(device.makeEvent(true));
  device.record(marks[used], stream);
  return used++;
}

void DeviceTimeline::span(int32_t lane, const char *name, const char *location, size_t begin,
                          size_t end, int64_t bytes) {
  spans.push_back({lane, name, location, begin, end, bytes});
}

void DeviceTimeline::flush(size_t last) {
  const Clock::time_point now = Clock::now();
  auto timeOf = [&](size_t mark) {
    double us = 0;
    device.on([&](auto &table, void *handle, char *message) {
      return table.event_elapsed_us(handle, marks[mark].get(), marks[last].get(), &us, message);
    });
    return now - std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double, std::micro>(us));
  };
  for (const Span &span : spans)
    events.add(span.lane, span.name, span.location, timeOf(span.begin), timeOf(span.end),
               span.bytes);
  clear();
}

void DeviceTimeline::clear() {
  spans.clear();
  used = 0;
}

} // namespace shardc::rt
