// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/Operations.h"

namespace shardc::plugin::cuda {

namespace {

shardrt_status captureBegin(void *handle, void *stream, char *message) {
  return on(handle, message, [&](Device &device) {
    // Other ranks of the process, and the thread that communicates, go on as they like.
    device.check(device.driver().captureBegin(streamOf(stream), captureThreadLocal),
                 "beginning to capture a stream");
  });
}

shardrt_status captureEnd(void *handle, void *stream, void **graph, char *message) {
  *graph = nullptr;
  return on(handle, message, [&](Device &device) {
    const Driver &driver = device.driver();
    int status = captureNone;
    device.check(driver.captureStatus(streamOf(stream), &status), "asking for a capture");
    if (status == captureNone)
      throw Failure{SHARDRT_INTERNAL, "the stream is not being captured"};
    GraphHandle captured = nullptr;
    device.check(driver.captureEnd(streamOf(stream), &captured), "ending the capture of a stream");
    GraphExecHandle made = nullptr;
    Result result = driver.graphInstantiate(&made, captured, 0);
    driver.graphDestroy(captured);
    device.check(result, "making a graph of what was captured");
    *graph = made;
  });
}

shardrt_status graphLaunch(void *handle, void *graph, void *stream, char *message) {
  return on(handle, message, [&](Device &device) {
    device.check(device.driver().graphLaunch(static_cast<GraphExecHandle>(graph), streamOf(stream)),
                 "launching a graph");
  });
}

void graphDestroy(void *handle, void *graph) {
  ignoring(handle, [&](Device &device) {
    device.driver().graphExecDestroy(static_cast<GraphExecHandle>(graph));
  });
}

} // namespace

void addGraphs(shardrt_device_plugin &table) {
  table.capture_begin = captureBegin;
  table.capture_end = captureEnd;
  table.graph_launch = graphLaunch;
  table.graph_destroy = graphDestroy;
}

} // namespace shardc::plugin::cuda
