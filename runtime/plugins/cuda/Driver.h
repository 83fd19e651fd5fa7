// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of CUDA's driver, from the library of the machine or from one that stands for it.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_DRIVER_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_DRIVER_H

#include "runtime/plugins/cuda/DriverTypes.h"
#include "runtime/plugins/cuda/EntryPoints.h"

#include <memory>
#include <vector>

namespace shardc::plugin::cuda {

/// The table (EntryPoints.h); all return a Result.
#define SHARDC_CUDA_DRIVER(X)                                                                      \
  X(init, cuInit, (unsigned))                                                                      \
  X(driverVersion, cuDriverGetVersion, (int *))                                                    \
  X(deviceCount, cuDeviceGetCount, (int *))                                                        \
  X(deviceGet, cuDeviceGet, (DeviceNumber *, int))                                                 \
  X(deviceName, cuDeviceGetName, (char *, int, DeviceNumber))                                      \
  X(deviceAttribute, cuDeviceGetAttribute, (int *, int, DeviceNumber))                             \
  X(deviceMemory, cuDeviceTotalMem_v2, (size_t *, DeviceNumber))                                   \
  X(contextRetain, cuDevicePrimaryCtxRetain, (ContextHandle *, DeviceNumber))                      \
  X(contextRelease, cuDevicePrimaryCtxRelease_v2, (DeviceNumber))                                  \
  X(contextGet, cuCtxGetCurrent, (ContextHandle *))                                                \
  X(contextSet, cuCtxSetCurrent, (ContextHandle))                                                  \
  X(errorName, cuGetErrorName, (Result, const char **))                                            \
  X(errorText, cuGetErrorString, (Result, const char **))                                          \
  X(allocate, cuMemAlloc_v2, (Pointer *, size_t))                                                  \
  X(release, cuMemFree_v2, (Pointer))                                                              \
  X(allocatePinned, cuMemHostAlloc, (void **, size_t, unsigned))                                   \
  X(releasePinned, cuMemFreeHost, (void *))                                                        \
  X(canReach, cuDeviceCanAccessPeer, (int *, DeviceNumber, DeviceNumber))                          \
  X(reach, cuCtxEnablePeerAccess, (ContextHandle, unsigned))                                       \
  X(memoryInfo, cuMemGetInfo_v2, (size_t *, size_t *))                                             \
  X(pointerAttribute, cuPointerGetAttribute, (void *, int, Pointer))                               \
  X(streamCreate, cuStreamCreate, (StreamHandle *, unsigned))                                      \
  X(streamDestroy, cuStreamDestroy_v2, (StreamHandle))                                             \
  X(streamSynchronize, cuStreamSynchronize, (StreamHandle))                                        \
  X(streamWaitEvent, cuStreamWaitEvent, (StreamHandle, EventHandle, unsigned))                     \
  X(eventCreate, cuEventCreate, (EventHandle *, unsigned))                                         \
  X(eventDestroy, cuEventDestroy_v2, (EventHandle))                                                \
  X(eventRecord, cuEventRecord, (EventHandle, StreamHandle))                                       \
  X(eventQuery, cuEventQuery, (EventHandle))                                                       \
  X(eventSynchronize, cuEventSynchronize, (EventHandle))                                           \
  X(eventElapsed, cuEventElapsedTime, (float *, EventHandle, EventHandle))                         \
  X(copy, cuMemcpyAsync, (Pointer, Pointer, size_t, StreamHandle))                                 \
  X(copy2d, cuMemcpy2DAsync_v2, (const Copy2d *, StreamHandle))                                    \
  X(fill, cuMemsetD8Async, (Pointer, unsigned char, size_t, StreamHandle))                         \
  X(moduleLoad, cuModuleLoadDataEx, (ModuleHandle *, const void *, unsigned, int *, void **))      \
  X(moduleUnload, cuModuleUnload, (ModuleHandle))                                                  \
  X(moduleFunction, cuModuleGetFunction, (FunctionHandle *, ModuleHandle, const char *))           \
  X(functionSet, cuFuncSetAttribute, (FunctionHandle, int, int))                                   \
  X(functionGet, cuFuncGetAttribute, (int *, int, FunctionHandle))                                 \
  X(launch, cuLaunchKernel,                                                                        \
    (FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,         \
     StreamHandle, void **, void **))                                                              \
  X(captureBegin, cuStreamBeginCapture_v2, (StreamHandle, int))                                    \
  X(captureEnd, cuStreamEndCapture, (StreamHandle, GraphHandle *))                                 \
  X(captureStatus, cuStreamIsCapturing, (StreamHandle, int *))                                     \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (GraphExecHandle *, GraphHandle, unsigned long long))                                          \
  X(graphLaunch, cuGraphLaunch, (GraphExecHandle, StreamHandle))                                   \
  X(graphExecDestroy, cuGraphExecDestroy, (GraphExecHandle))                                       \
  X(graphDestroy, cuGraphDestroy, (GraphHandle))

/// A library that is open, and its name for messages.
class OpenLibrary {
public:
  /// The first of these names that can be loaded; throws Failure (SHARDRT_NOT_FOUND) with the
  /// reason of each.
  static std::shared_ptr<OpenLibrary> open(const std::string &what,
                                           const std::vector<std::string> &names);
  ~OpenLibrary();
  OpenLibrary(const OpenLibrary &) = delete;

  /// Null if the library lacks it.
  void *find(const char *symbol) const;
  const std::string name;

private:
  OpenLibrary(std::string name, void *handle) : name(std::move(name)), handle(handle) {}
  void *const handle;
};

/// The table. Made once for a library; all devices share it.
struct Driver {
  /// The driver of the machine if `library` is null. Throws Failure with everything that it lacks:
  /// functions, or a version.
  static std::shared_ptr<const Driver> load(const char *library);

  /// Throws Failure if the result is not a success; `what` is what was tried.
  void check(Result result, const std::string &what) const;
  /// "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string describe(Result result) const;

  using EntryResult = Result;
  SHARDC_CUDA_DRIVER(SHARDC_ENTRY)
  /// Only the emulated driver has it.
  Result (*loadBitcode)(ModuleHandle *, const void *, size_t) = nullptr;

  std::shared_ptr<OpenLibrary> library;
  int version = 0; ///< 13000 for 13.0

  bool isEmulated() const { return loadBitcode != nullptr; }
};

/// The folder of this plugin, for libraries that are beside it.
std::string folderOfPlugin();

/// The oldest driver that is known to do all this (12.0).
constexpr int oldestDriver = 12000;

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_DRIVER_H
