// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/cuda-emulator/Streams.h"
#include "tools/cuda-emulator/Engine.h"

namespace shardc::emulator {

CUresult enqueue(CUstream stream, Operation operation) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  Stream *to = streamOf(stream);
  if (!to)
    return CUDA_ERROR_INVALID_HANDLE;
  return engine.enqueue(*to, Work{std::move(operation), nullptr});
}

CUresult enqueue(CUstream stream, std::string name, std::vector<Region> reads,
                 std::vector<Region> writes, std::function<void()> body) {
  auto step = [body = std::move(body)] {
    body();
    return Progress::Done;
  };
  return enqueue(
      stream, Operation{std::move(name), std::move(reads), std::move(writes),
                        [step = std::move(step)]() -> std::function<Progress()> { return step; }});
}

void wake() { Engine::instance().wakeUp(); }

bool isCapturing(CUstream stream) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  Stream *of = streamOf(stream);
  return of && of->capture;
}

void invalidateCapture(CUstream stream) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  if (Stream *of = streamOf(stream); of && of->capture)
    engine.invalidate(*of->capture, "a library's call on a captured stream");
}

int deviceOf(CUstream stream) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  Stream *of = streamOf(stream);
  return of ? of->device : -1;
}

void reportError(int device, CUresult error, const std::string &message) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  engine.fail(device, error, message);
}

CUresult errorOf(int device) {
  Engine &engine = Engine::instance();
  std::lock_guard lock(engine.mutex);
  return size_t(device) < engine.devices.size() ? engine.devices[device]->error
                                                : CUDA_ERROR_INVALID_DEVICE;
}

} // namespace shardc::emulator
