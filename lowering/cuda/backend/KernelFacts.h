// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the device's code and the host's agree on about kernels (shardrt_kernel of
// runtime/abi/shardrt_program.h).

#ifndef SHARDC_LOWERING_CUDA_BACKEND_KERNELFACTS_H
#define SHARDC_LOWERING_CUDA_BACKEND_KERNELFACTS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>
#include <vector>

namespace shardc::cuda {

/// The `gpu.module` that holds all kernels of a program.
constexpr llvm::StringLiteral kKernelModule = "kernels";
/// Dynamic shared memory of a block, in the code of the device.
constexpr llvm::StringLiteral kDynamicSharedSymbol = "shared";
/// Bytes: shared memory of a kernel begins at multiples of it.
constexpr int64_t kSharedAlignment = 128;
/// Most threads of a block.
constexpr int64_t kMostThreads = 1024;
/// Parameters before a kernel's own: the error word and the number of the launch.
constexpr unsigned kRunParams = 2;

/// Of a function of the device: its indices have 32 bits, but for what it takes.
constexpr llvm::StringLiteral kNarrowIndicesAttr = "narrow_indices";

/// One kernel, as `gpu.func` or as function of LLVM's dialect.
struct KernelFacts {
  std::string name;
  std::vector<std::string> messages;
  unsigned params = 0; // its own
  uint32_t block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0; // dynamic
};

/// In the order of the module, which is that of the program's table.
std::vector<KernelFacts> readKernelFacts(mlir::gpu::GPUModuleOp kernels);

/// Number of the message in the list of a kernel, to which it is added.
unsigned addMessage(mlir::Operation *kernel, llvm::StringRef message);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_KERNELFACTS_H
