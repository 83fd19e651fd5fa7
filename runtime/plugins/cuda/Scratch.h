// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the device that products and collectives work in.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_SCRATCH_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_SCRATCH_H

#include "runtime/plugins/cuda/Device.h"

namespace shardc::plugin::cuda {

/// Memory for the work of one stream, kept from call to call. What was outgrown is kept as well:
/// work or graphs may still use it.
class StreamScratch {
public:
  explicit StreamScratch(Device &device) : device(device) {}
  ~StreamScratch();
  StreamScratch(const StreamScratch &) = delete;

  /// Aligned to 256. Throws Failure where it would have to grow while the stream is captured.
  char *reserve(StreamHandle stream, size_t bytes);
  size_t size() const { return capacity; }

private:
  Device &device;
  Pointer memory = 0;
  size_t capacity = 0;
  std::vector<Pointer> outgrown;
};

/// Whether what is put on the stream becomes part of a graph.
bool isCaptured(const Device &device, StreamHandle stream);

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_SCRATCH_H
