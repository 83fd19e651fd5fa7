// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Devices, contexts, errors, and what only the emulated device has.
#include "tools/cuda-emulator/DriverSupport.h"
#include "tools/cuda-emulator/Image.h"
#include "tools/cuda-emulator/Memory.h"
#include "tools/cuda-emulator/Mutants.h"
#include "tools/cuda-emulator/Report.h"
#include "tools/cuda-emulator/Settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace shardc::emulator {
namespace {

bool ready = false;
/// The contexts of a thread, the last of which is current. It is of no use to destroy it: models
/// may be destroyed when the variables of the main thread are gone.
struct Contexts {
  Device *all[64];
  size_t count;
  bool empty() const { return count == 0; }
  Device *&back() { return all[count - 1]; }
  void pop_back() { --count; }
  void push_back(Device *device) {
    if (count == std::size(all))
      pop_back();
    all[count++] = device;
  }
};
constinit thread_local Contexts contexts{};

Device *deviceOf(CUcontext context) {
  for (auto &device : Engine::instance().devices)
    if (reinterpret_cast<CUcontext>(device.get()) == context)
      return device.get();
  return nullptr;
}

CUcontext handle(Device *device) { return reinterpret_cast<CUcontext>(device); }

struct ErrorText {
  const char *name, *text;
};
const auto &errors = *new std::map<CUresult, ErrorText>{
    {CUDA_SUCCESS, {"CUDA_SUCCESS", "no error"}},
    {CUDA_ERROR_INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {CUDA_ERROR_OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {CUDA_ERROR_NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
    {CUDA_ERROR_NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {CUDA_ERROR_INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
    {CUDA_ERROR_INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
    {CUDA_ERROR_INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {CUDA_ERROR_NO_BINARY_FOR_GPU,
     {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
     {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these devices"}},
    {CUDA_ERROR_INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {CUDA_ERROR_ILLEGAL_STATE,
     {"CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"}},
    {CUDA_ERROR_NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {CUDA_ERROR_NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
    {CUDA_ERROR_ILLEGAL_ADDRESS,
     {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
     {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
     {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"}},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
     {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"}},
    {CUDA_ERROR_MISALIGNED_ADDRESS, {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"}},
    {CUDA_ERROR_LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
    {CUDA_ERROR_NOT_SUPPORTED, {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
     {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
      "operation failed due to a previous error during capture"}},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE,
     {"CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate captures"}},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
     {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
      "capture was not ended in the same stream as it began"}},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
     {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"}},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
     {"CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
      "dependency created on uncaptured work in another stream"}},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     {"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
      "operation would make the legacy stream depend on a capturing blocking stream"}},
    {CUDA_ERROR_CAPTURED_EVENT,
     {"CUDA_ERROR_CAPTURED_EVENT",
      "operation not permitted on an event last recorded in a capturing stream"}},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
     {"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
      "attempt to terminate a thread-local capture sequence from another thread"}},
    {CUDA_ERROR_UNKNOWN, {"CUDA_ERROR_UNKNOWN", "unknown error"}}};

/// Attributes by the numbers of the driver; others are 0.
const auto &attributes = *new std::map<int, int>{
    {1, 1024},       // threads of a block
    {2, 1024},       // block x, y, z
    {3, 1024},       //
    {4, 64},         //
    {5, 0x7fffffff}, // grid x, y, z
    {6, 65535},      //
    {7, 65535},      //
    {8, 49152},      // shared memory of a block
    {9, 65536},      // constant memory
    {10, 32},        // warp
    {12, 65536},     // registers of a block
    {13, 1000000},   // clock, kHz
    {16, 8},         // multiprocessors
    {19, 1},         // maps host memory
    {31, 1},         // concurrent kernels
    {36, 1000000},   // memory clock, kHz
    {37, 4096},      // bits of the memory bus
    {38, 4 << 20},   // L2
    {39, 2048},      // threads of a multiprocessor
    {40, 2},         // copy engines
    {41, 1},         // unified addresses
    {75, 8},         // compute capability
    {76, 0},         //
    {78, 1},         // priorities
    {81, 167936},    // shared memory of a multiprocessor
    {82, 65536},     // registers of a multiprocessor
    {97, 166912},    // shared memory of a block, at most
    {106, 32}        // blocks of a multiprocessor
};

/// What the program has made on the device and not destroyed.
void reportLeaks(Device &device) {
  if (device.error)
    return; // Calls that destroy fail then.
  std::vector<Allocation> live = Memory::instance().live(device.ordinal);
  std::string text;
  auto add = [&](size_t n, const char *what) {
    if (n)
      text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  };
  add(live.size(), "allocations");
  add(device.streams.size(), "streams");
  add(device.events.size(), "events");
  if (text.empty())
    return;
  for (size_t i = 0; i < live.size() && i < 5; ++i)
    text += std::string(i ? ", " : " (") + std::to_string(live[i].bytes) + " bytes" +
            (live[i].pinned ? " pinned" : "") + " as number " + std::to_string(live[i].number) +
            (i + 1 == live.size() ? ")"
             : i == 4             ? ", ...)"
                                  : "");
  addReport("leak on device " + std::to_string(device.ordinal) + ": never freed " + text);
}

struct AtEnd {
  ~AtEnd() {
    if (!ready)
      return;
    for (auto &device : Engine::instance().devices)
      if (device->retained)
        reportLeaks(*device);
    writeCounts();
    writeMutants();
  }
} atEnd;

} // namespace

bool initialized() { return ready; }

Device *currentDevice() { return contexts.empty() ? nullptr : contexts.back(); }

CUresult refuse(CUresult error, const std::string &why) {
  std::fprintf(stderr, "cuda-emulated: %s\n", why.c_str());
  return error;
}

} // namespace shardc::emulator

using namespace shardc::emulator;

CUresult cuInit(unsigned flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (!settingsError().empty())
    return refuse(CUDA_ERROR_INVALID_VALUE, settingsError());
  try {
    Memory::instance();
    if (Engine::instance().devices.empty())
      return CUDA_ERROR_NO_DEVICE;
  } catch (const std::exception &e) {
    return refuse(CUDA_ERROR_OUT_OF_MEMORY, e.what());
  }
  ready = true;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = 12080;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  auto found = errors.find(error);
  if (!text || found == errors.end())
    return CUDA_ERROR_INVALID_VALUE;
  *text = found->second.text;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  auto found = errors.find(error);
  if (!text || found == errors.end())
    return CUDA_ERROR_INVALID_VALUE;
  *text = found->second.name;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return call([&](Engine &engine) -> CUresult {
    if (!device)
      return CUDA_ERROR_INVALID_VALUE;
    if (ordinal < 0 || size_t(ordinal) >= engine.devices.size())
      return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetCount(int *count) {
  return call([&](Engine &engine) -> CUresult {
    if (!count)
      return CUDA_ERROR_INVALID_VALUE;
    *count = int(engine.devices.size());
    return CUDA_SUCCESS;
  });
}

/// Calls body(device) for a device by its number.
template <typename Body> static CUresult ofDevice(CUdevice device, Body body) {
  return call([&](Engine &engine) -> CUresult {
    if (device < 0 || size_t(device) >= engine.devices.size())
      return CUDA_ERROR_INVALID_DEVICE;
    return body(*engine.devices[device]);
  });
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device) {
  return ofDevice(device, [&](Device &) -> CUresult {
    if (!name || bytes <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, bytes, "emulated device");
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  return ofDevice(device, [&](Device &of) -> CUresult {
    if (!value || attribute <= 0)
      return CUDA_ERROR_INVALID_VALUE;
    auto found = attributes.find(attribute);
    *value = found == attributes.end() ? 0 : found->second;
    if (attribute == 33) // the bus
      *value = of.ordinal + 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  return ofDevice(device, [&](Device &) -> CUresult {
    if (!bytes)
      return CUDA_ERROR_INVALID_VALUE;
    *bytes = settings().memoryBytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(void *uuid, CUdevice device) {
  return ofDevice(device, [&](Device &of) -> CUresult {
    std::memset(uuid, 0, 16);
    std::memcpy(uuid, "emulated", 8);
    static_cast<uint8_t *>(uuid)[15] = uint8_t(of.ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device) {
  return ofDevice(device, [&](Device &of) -> CUresult {
    if (!id || bytes < 13)
      return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(id, bytes, "0000:%02x:00.0", of.ordinal + 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  return ofDevice(device, [&](Device &of) -> CUresult {
    if (peer < 0 || size_t(peer) >= of.peers.size())
      return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer && settings().peers;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return ofDevice(device, [&](Device &of) -> CUresult {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    ++of.retained;
    *context = handle(&of);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return call([&](Engine &engine) -> CUresult {
    if (device < 0 || size_t(device) >= engine.devices.size())
      return CUDA_ERROR_INVALID_DEVICE;
    Device &of = *engine.devices[device];
    if (!of.retained)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (--of.retained)
      return CUDA_SUCCESS;
    engine.waitForDevice(device);
    reportLeaks(of);
    engine.resetDevice(of);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call([&](Engine &) -> CUresult {
    Device *device = context ? deviceOf(context) : nullptr;
    if (context && !device)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (!contexts.empty())
      contexts.pop_back();
    if (device)
      contexts.push_back(device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return call([&](Engine &) -> CUresult {
    *context = currentDevice() ? handle(currentDevice()) : nullptr;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return call([&](Engine &) -> CUresult {
    Device *device = deviceOf(context);
    if (!device)
      return CUDA_ERROR_INVALID_CONTEXT;
    contexts.push_back(device);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  return call([&](Engine &) -> CUresult {
    if (contexts.empty())
      return CUDA_ERROR_INVALID_CONTEXT;
    if (context)
      *context = handle(contexts.back());
    contexts.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice *device) {
  return call([&](Engine &) -> CUresult {
    if (!currentDevice())
      return CUDA_ERROR_INVALID_CONTEXT;
    *device = currentDevice()->ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize(void) {
  return callInContext([&](Engine &engine, Device &device) -> CUresult {
    if (CUresult error = engine.unsafeCall("cuCtxSynchronize"))
      return error;
    return engine.waitForDevice(device.ordinal);
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return callInContext([&](Engine &, Device &device) -> CUresult {
    Device *other = deviceOf(peer);
    if (!other || other == &device)
      return CUDA_ERROR_INVALID_CONTEXT;
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    if (!settings().peers)
      return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (device.peers[other->ordinal])
      return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    device.peers[other->ordinal] = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return callInContext([&](Engine &, Device &device) -> CUresult {
    Device *other = deviceOf(peer);
    if (!other || !device.peers[other->ordinal])
      return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    device.peers[other->ordinal] = false;
    return CUDA_SUCCESS;
  });
}

const char *cuEmulatedReports(size_t *count) {
  std::lock_guard lock(Engine::instance().mutex);
  static auto &text = *new std::string;
  text = allReports(count);
  return text.c_str();
}

void cuEmulatedClearReports(void) {
  std::lock_guard lock(Engine::instance().mutex);
  Engine::instance().clearErrors();
}

CUresult cuEmulatedSetOrder(const char *order) {
  return call([&](Engine &engine) -> CUresult {
    for (size_t i = 0; i < engine.devices.size(); ++i)
      engine.waitForDevice(int(i));
    if (!parseOrder(order, settings()))
      return CUDA_ERROR_INVALID_VALUE;
    engine.reseed();
    return CUDA_SUCCESS;
  });
}

void cuEmulatedSetPeers(int peers) {
  std::lock_guard lock(Engine::instance().mutex);
  settings().peers = peers != 0;
}

CUresult cuEmulatedSetDrop(const char *drop) {
  std::lock_guard lock(Engine::instance().mutex);
  if (!parseDrop(drop, settings()))
    return CUDA_ERROR_INVALID_VALUE;
  counts() = {};
  Image::forgetCompiled();
  return CUDA_SUCCESS;
}

uint64_t cuEmulatedCount(const char *what) {
  std::lock_guard lock(Engine::instance().mutex);
  std::string name = what;
  if (name == "communicators" || name == "registered")
    return name == "registered" ? held().registeredBytes : held().communicators;
  return name == "graphs"    ? counts().graphs
         : name == "wait"    ? counts().waits
         : name == "barrier" ? counts().barriers
         : name == "check"   ? counts().checks
                             : 0;
}
