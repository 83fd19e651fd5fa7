// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of a rank on memory of its own device and of those of other ranks of the process.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_PEERKERNELS_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_PEERKERNELS_H

#include "runtime/include/shardrt_device_peer.h"
#include "runtime/plugins/cuda/Device.h"

#include <map>
#include <span>

namespace shardc::plugin::cuda {

class PeerKernels {
public:
  explicit PeerKernels(const Device &device) : device(device) {}
  ~PeerKernels();
  PeerKernels(const PeerKernels &) = delete;

  void copy(std::span<const shardrt_peer_copy> copies, StreamHandle stream);
  void reduce(const shardrt_peer_reduction &reduction, StreamHandle stream);

private:
  /// Loaded when it is first used. Throws Failure.
  template <typename Text> FunctionHandle kernel(uint64_t key, const char *name, Text text);
  void launch(FunctionHandle function, uint64_t width, uint64_t rows, unsigned entries,
              void **params, StreamHandle stream);

  const Device &device;
  struct Loaded {
    ModuleHandle module = nullptr;
    FunctionHandle function = nullptr;
  };
  std::map<uint64_t, Loaded> kernels;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_PEERKERNELS_H
