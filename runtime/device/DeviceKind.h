// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs for devices, in a library of their own (libshardrt_device.so), which is loaded when a
// model needs it: what libshardrt knows of it.
#ifndef SHARDC_RUNTIME_DEVICE_DEVICEKIND_H
#define SHARDC_RUNTIME_DEVICE_DEVICEKIND_H

#include "runtime/executor/Executor.h"

namespace shardc::rt {

extern const ExecutorKind cudaExecutorKind;

/// What the library gives. It shares classes with libshardrt, and so must have been built with it.
struct DeviceLibrary {
  uint64_t fingerprint = 0;
  std::unique_ptr<Executor> (*create)(const ExecutorContext &context) = nullptr;

  /// Sizes of what both sides see, and the version.
  static uint64_t expectedFingerprint();
};

} // namespace shardc::rt

/// The one symbol of the library: "shardrt_device_library".
using shardrt_device_library_fn = const shardc::rt::DeviceLibrary *(*)();

#endif // SHARDC_RUNTIME_DEVICE_DEVICEKIND_H
