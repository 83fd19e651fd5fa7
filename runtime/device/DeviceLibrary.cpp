// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libshardrt_device.so: the part of the runtime that programs for devices need (DeviceKind.h).
#include "runtime/device/DeviceExecutor.h"
#include "runtime/device/DeviceKind.h"

using namespace shardc::rt;

extern "C" __attribute__((visibility("default"))) const DeviceLibrary *shardrt_device_library() {
  static const DeviceLibrary library{
      DeviceLibrary::expectedFingerprint(),
      [](const ExecutorContext &context) -> std::unique_ptr<Executor> {
        return std::make_unique<DeviceExecutor>(context,
                                                DevicePlugin::load(context.manifest.targetKind));
      }};
  return &library;
}
