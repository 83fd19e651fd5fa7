// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events and graphs.
#include "tools/cuda-emulator/DriverSupport.h"

namespace shardc::emulator {

Stream *streamOf(CUstream handle) {
  // 1 is the default stream too; 2, that of the thread, is not supported.
  if (reinterpret_cast<uintptr_t>(handle) <= 1)
    return currentDevice() ? &currentDevice()->zero : nullptr;
  for (auto &device : Engine::instance().devices)
    if (device->streams.count(reinterpret_cast<Stream *>(handle)))
      return reinterpret_cast<Stream *>(handle);
  return nullptr;
}

Event *eventOf(CUevent handle) {
  for (auto &device : Engine::instance().devices)
    if (device->events.count(reinterpret_cast<Event *>(handle)))
      return reinterpret_cast<Event *>(handle);
  return nullptr;
}

} // namespace shardc::emulator

using namespace shardc::emulator;

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int) {
  return callInContext([&](Engine &engine, Device &device) -> CUresult {
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
      return CUDA_ERROR_INVALID_VALUE;
    *stream = reinterpret_cast<CUstream>(
        engine.createStream(device.ordinal, !(flags & CU_STREAM_NON_BLOCKING)));
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return callInContext([&](Engine &, Device &) -> CUresult {
    if (least)
      *least = 0;
    if (greatest)
      *greatest = -5;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return call([&](Engine &engine) -> CUresult {
    Stream *stream = streamOf(handle);
    if (!stream || stream == &engine.devices[stream->device]->zero)
      return CUDA_ERROR_INVALID_HANDLE;
    engine.destroyStream(stream);
    return CUDA_SUCCESS;
  });
}

/// A call on the host that a stream that is captured does not allow.
static CUresult hostCall(Engine &engine, Stream &stream, const char *name) {
  if (!stream.capture)
    return engine.unsafeCall(name);
  engine.invalidate(*stream.capture, std::string(name) + " of a stream that is captured");
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuStreamSynchronize(CUstream handle) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    if (CUresult error = hostCall(engine, stream, "cuStreamSynchronize"))
      return error;
    return engine.waitFor(engine.tails(stream), stream.device);
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    if (CUresult error = hostCall(engine, stream, "cuStreamQuery"))
      return error;
    bool done = true;
    for (const TaskPtr &task : engine.tails(stream)) {
      done &= task->done;
      if (task->done)
        engine.observe(*task, task->point);
      else
        engine.pollFor(task);
    }
    if (CUresult error = engine.devices[stream.device]->error)
      return error;
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    Event *of = eventOf(event);
    return of ? engine.wait(stream, *of) : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    *context = reinterpret_cast<CUcontext>(engine.devices[stream.device].get());
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    return engine.beginCapture(stream, mode);
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  if (!graph)
    return CUDA_ERROR_INVALID_VALUE;
  *graph = nullptr;
  // Also with a sticky error: the capture must end.
  return call([&](Engine &engine) -> CUresult {
    Stream *stream = streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    std::shared_ptr<CapturedGraph> captured;
    CUresult result = engine.endCapture(*stream, captured);
    if (!captured)
      return result;
    GraphHandle *made = new GraphHandle{std::move(captured)};
    engine.graphs.insert(made);
    *graph = reinterpret_cast<CUgraph>(made);
    return CUDA_SUCCESS;
  });
}

static int captureStatus(const Stream &stream) {
  return !stream.capture                   ? CU_STREAM_CAPTURE_STATUS_NONE
         : stream.capture->invalid.empty() ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                           : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

CUresult cuStreamIsCapturing(CUstream handle, int *status) {
  return callOnStream(handle, [&](Engine &, Stream &stream) -> CUresult {
    *status = captureStatus(stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, int *status, unsigned long long *id,
                                   CUgraph *graph, const CUgraphNode **nodes, size_t *n) {
  return callOnStream(handle, [&](Engine &, Stream &stream) -> CUresult {
    // The graph itself cannot be changed while it is captured.
    if (graph || nodes || n)
      return CUDA_ERROR_NOT_SUPPORTED;
    *status = captureStatus(stream);
    if (id && stream.capture)
      *id = stream.capture->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  return refuse(CUDA_ERROR_NOT_SUPPORTED,
                std::string("cuThreadExchangeStreamCaptureMode is not emulated") +
                    (mode ? "" : " (and there is no mode)"));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  return callInContext([&](Engine &engine, Device &) -> CUresult {
    auto found = engine.graphs.find(reinterpret_cast<GraphHandle *>(graph));
    if (found == engine.graphs.end() || !executable)
      return CUDA_ERROR_INVALID_VALUE;
    GraphExec *made = nullptr;
    CUresult result = engine.instantiate((*found)->graph, made);
    *executable = reinterpret_cast<CUgraphExec>(made);
    return result;
  });
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream handle) {
  return callOnStream(handle, [&](Engine &engine, Stream &stream) -> CUresult {
    auto found = engine.executables.find(reinterpret_cast<GraphExec *>(executable));
    if (found == engine.executables.end())
      return CUDA_ERROR_INVALID_VALUE;
    return engine.launch(**found, stream);
  });
}

CUresult cuGraphExecDestroy(CUgraphExec executable) {
  return call([&](Engine &engine) -> CUresult {
    auto *of = reinterpret_cast<GraphExec *>(executable);
    if (!engine.executables.erase(of))
      return CUDA_ERROR_INVALID_VALUE;
    delete of;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphDestroy(CUgraph graph) {
  return call([&](Engine &engine) -> CUresult {
    auto *of = reinterpret_cast<GraphHandle *>(graph);
    if (!engine.graphs.erase(of))
      return CUDA_ERROR_INVALID_VALUE;
    delete of;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n) {
  return call([&](Engine &engine) -> CUresult {
    auto found = engine.graphs.find(reinterpret_cast<GraphHandle *>(graph));
    if (found == engine.graphs.end() || !n)
      return CUDA_ERROR_INVALID_VALUE;
    const std::vector<CapturedNode> &all = (*found)->graph->nodes;
    if (nodes)
      for (size_t i = 0; i < *n; ++i)
        nodes[i] = i < all.size()
                       ? reinterpret_cast<CUgraphNode>(const_cast<CapturedNode *>(&all[i]))
                       : nullptr;
    *n = all.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  return callInContext([&](Engine &, Device &device) -> CUresult {
    if (!event)
      return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS)
      return CUDA_ERROR_NOT_SUPPORTED;
    Event *made = new Event;
    made->device = device.ordinal;
    made->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    device.events.insert(made);
    *event = reinterpret_cast<CUevent>(made);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return call([&](Engine &engine) -> CUresult {
    Event *event = eventOf(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    engine.devices[event->device]->events.erase(event);
    delete event;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream on) {
  return callOnStream(on, [&](Engine &engine, Stream &stream) -> CUresult {
    Event *event = eventOf(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (event->device != stream.device)
      return CUDA_ERROR_INVALID_HANDLE;
    return engine.record(*event, stream);
  });
}

/// What both functions that ask for an event on the host begin with.
static CUresult hostCall(Engine &engine, Event &event, const char *name) {
  if (CUresult error = engine.devices[event.device]->error)
    return error;
  if (event.capture) {
    engine.unsafeCall(name);
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  return engine.unsafeCall(name);
}

CUresult cuEventQuery(CUevent handle) {
  return call([&](Engine &engine) -> CUresult {
    Event *event = eventOf(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult error = hostCall(engine, *event, "cuEventQuery"))
      return error;
    if (!event->task || event->task->done) {
      if (event->task)
        engine.observeAsked(*event->task, event->point);
      return CUDA_SUCCESS;
    }
    engine.pollFor(event->task);
    if (CUresult error = engine.devices[event->device]->error)
      return error;
    return CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return call([&](Engine &engine) -> CUresult {
    Event *event = eventOf(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult error = hostCall(engine, *event, "cuEventSynchronize"))
      return error;
    return event->task ? engine.waitFor({event->task}, event->device, event->point) : CUDA_SUCCESS;
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  return call([&](Engine &engine) -> CUresult {
    Event *from = eventOf(begin), *to = eventOf(end);
    if (!from || !to || !from->timed || !to->timed || !from->task || !to->task)
      return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult error = engine.devices[from->device]->error)
      return error;
    if (!from->task->done || !to->task->done)
      return CUDA_ERROR_NOT_READY;
    *milliseconds =
        std::chrono::duration<float, std::milli>(to->task->doneAt - from->task->doneAt).count();
    return CUDA_SUCCESS;
  });
}
