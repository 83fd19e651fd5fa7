// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Operations.h"

namespace shardc::plugin::cuda {

namespace {

shardrt_status streamCreate(void *handle, void **stream, char *message) {
  return on(handle, message, [&](Device &device) {
    StreamHandle made = nullptr;
    device.check(device.driver().streamCreate(&made, streamNonBlocking), "making a stream");
    *stream = made;
  });
}

void streamDestroy(void *handle, void *stream) {
  ignoring(handle, [&](Device &device) { device.driver().streamDestroy(streamOf(stream)); });
}

shardrt_status streamSynchronize(void *handle, void *stream, char *message) {
  return on(handle, message, [&](Device &device) {
    device.check(device.driver().streamSynchronize(streamOf(stream)), "waiting for a stream");
  });
}

shardrt_status streamWaitEvent(void *handle, void *stream, void *event, char *message) {
  return on(handle, message, [&](Device &device) {
    device.check(device.driver().streamWaitEvent(streamOf(stream), eventOf(event), 0),
                 "making a stream wait for an event");
  });
}

shardrt_status eventCreate(void *handle, int32_t timed, void **event, char *message) {
  return on(handle, message, [&](Device &device) {
    EventHandle made = nullptr;
    device.check(device.driver().eventCreate(&made, timed ? eventDefault : eventNoTiming),
                 "making an event");
    *event = made;
  });
}

void eventDestroy(void *handle, void *event) {
  ignoring(handle, [&](Device &device) { device.driver().eventDestroy(eventOf(event)); });
}

shardrt_status eventRecord(void *handle, void *event, void *stream, char *message) {
  return on(handle, message, [&](Device &device) {
    device.check(device.driver().eventRecord(eventOf(event), streamOf(stream)),
                 "recording an event");
  });
}

shardrt_status eventQuery(void *handle, void *event, int32_t *done, char *message) {
  return on(handle, message, [&](Device &device) {
    Result result = device.driver().eventQuery(eventOf(event));
    *done = result == resultSuccess;
    if (result != resultNotReady)
      device.check(result, "the device's work");
  });
}

shardrt_status eventSynchronize(void *handle, void *event, char *message) {
  return on(handle, message, [&](Device &device) {
    device.check(device.driver().eventSynchronize(eventOf(event)), "waiting for an event");
  });
}

shardrt_status eventElapsed(void *handle, void *begin, void *end, double *us, char *message) {
  return on(handle, message, [&](Device &device) {
    float ms = 0;
    device.check(device.driver().eventElapsed(&ms, eventOf(begin), eventOf(end)),
                 "the time between two events");
    *us = double(ms) * 1000;
  });
}

} // namespace

void addStreams(shardrt_device_plugin &table) {
  table.stream_create = streamCreate;
  table.stream_destroy = streamDestroy;
  table.stream_synchronize = streamSynchronize;
  table.stream_wait_event = streamWaitEvent;
  table.event_create = eventCreate;
  table.event_destroy = eventDestroy;
  table.event_record = eventRecord;
  table.event_query = eventQuery;
  table.event_synchronize = eventSynchronize;
  table.event_elapsed_us = eventElapsed;
}

} // namespace shardc::plugin::cuda
