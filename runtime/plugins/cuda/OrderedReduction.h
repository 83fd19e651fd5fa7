// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of blocks from all members in the order of their positions, with the rounding of ranks
// on CPUs: what NCCL does otherwise, or has no type for.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_ORDEREDREDUCTION_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_ORDEREDREDUCTION_H

#include "runtime/plugins/cuda/Device.h"

#include <map>

namespace shardc::plugin::cuda {

/// The text of a kernel `reduce(out, own, blocks, count, stride, n, p)`: element i of `out` is that
/// of all n blocks, of which block p is `own`, and block q is `stride` * q bytes behind `blocks`.
std::string reductionPtx(shardrt_type type, uint32_t reduction);
/// The same for the emulated device.
std::string reductionIr(shardrt_type type, uint32_t reduction);

class OrderedReduction {
public:
  explicit OrderedReduction(Device &device) : device(device) {}
  ~OrderedReduction();
  OrderedReduction(const OrderedReduction &) = delete;

  struct Blocks {
    const char *own, *others;
    size_t stride; ///< bytes
    uint32_t n, p;
  };
  void run(shardrt_type type, uint32_t reduction, char *out, const Blocks &blocks, uint64_t count,
           StreamHandle stream);

private:
  FunctionHandle kernel(shardrt_type type, uint32_t reduction);

  Device &device;
  struct Loaded {
    ModuleHandle module = nullptr;
    FunctionHandle function = nullptr;
  };
  std::map<std::pair<shardrt_type, uint32_t>, Loaded> kernels;
};

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_ORDEREDREDUCTION_H
