// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of the plugin's table, by subject, and what they have in common.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_OPERATIONS_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_OPERATIONS_H

#include "runtime/plugins/cuda/Device.h"

namespace shardc::plugin::cuda {

void addMemory(shardrt_device_plugin &table);
void addStreams(shardrt_device_plugin &table);
void addKernels(shardrt_device_plugin &table);
void addGraphs(shardrt_device_plugin &table);

/// Runs a function of the table in the device's context.
template <typename Function>
shardrt_status on(void *handle, char *message, Function function) noexcept {
  return guarded(message, [&] {
    Device &device = Device::of(handle);
    Device::Current here(device);
    function(device);
  });
}

/// The same where nobody is told of a failure: what is released is gone in any case.
template <typename Function> void ignoring(void *handle, Function function) noexcept {
  char message[SHARDRT_MESSAGE_BYTES];
  on(handle, message, function);
}

inline Pointer address(const void *memory) { return reinterpret_cast<Pointer>(memory); }
inline StreamHandle streamOf(void *stream) { return static_cast<StreamHandle>(stream); }
inline EventHandle eventOf(void *event) { return static_cast<EventHandle>(event); }

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_OPERATIONS_H
