// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all functions of the driver begin with.
#ifndef SHARDC_TOOLS_CUDA_EMULATOR_DRIVERSUPPORT_H
#define SHARDC_TOOLS_CUDA_EMULATOR_DRIVERSUPPORT_H

#include "tools/cuda-emulator/Engine.h"

#include <exception>
#include <mutex>

namespace shardc::emulator {

/// Whether cuInit was called.
bool initialized();

/// Says on stderr why a call fails, where the error code alone says too little. It is no report.
CUresult refuse(CUresult error, const std::string &why);

Event *eventOf(CUevent event);

/// Calls body(engine) with the lock held.
template <typename Body> CUresult call(Body body) {
  try {
    if (!initialized())
      return CUDA_ERROR_NOT_INITIALIZED;
    Engine &engine = Engine::instance();
    std::lock_guard lock(engine.mutex);
    return body(engine);
  } catch (const std::exception &e) {
    return refuse(CUDA_ERROR_UNKNOWN, e.what());
  }
}

/// The same for functions that need a context: body(engine, device). The sticky error comes first.
template <typename Body> CUresult callInContext(Body body) {
  return call([&](Engine &engine) -> CUresult {
    Device *device = currentDevice();
    if (!device)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (device->error)
      return device->error;
    return body(engine, *device);
  });
}

/// The same for functions of a stream: body(engine, stream).
template <typename Body> CUresult callOnStream(CUstream handle, Body body) {
  return call([&](Engine &engine) -> CUresult {
    Stream *stream = streamOf(handle);
    if (!stream)
      return currentDevice() ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
    if (CUresult error = engine.devices[stream->device]->error)
      return error;
    // Stream 0 of a device whose other streams are captured would have to be captured as well.
    Device &device = *engine.devices[stream->device];
    if (stream == &device.zero)
      for (Stream *other : device.streams)
        if (other->blocking && other->capture) {
          engine.invalidate(*other->capture,
                            "work on stream 0, which is ordered with a stream that "
                            "is captured");
          return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    return body(engine, *stream);
  });
}

} // namespace shardc::emulator

#endif // SHARDC_TOOLS_CUDA_EMULATOR_DRIVERSUPPORT_H
