// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code of devices: from kernels in LLVM's dialect to images, within the process but for ptxas.

#ifndef SHARDC_LOWERING_CUDA_BACKEND_DEVICECODE_H
#define SHARDC_LOWERING_CUDA_BACKEND_DEVICECODE_H

#include "lowering/cuda/core/Chips.h"
#include "lowering/target/Backend.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace shardc::cuda {

struct Image {
  uint32_t format = 0; // SHARDRT_IMAGE_...
  uint32_t chip = 0;   // 0 for bitcode
  target::ObjectCode bytes;
};

/// A cubin for each chip with the PTX that `keepsPtx` names, or bitcode for the emulated device.
/// Errors name the kernels that cannot be compiled, all at once.
llvm::Expected<std::vector<Image>> compileKernels(mlir::gpu::GPUModuleOp kernels,
                                                  const ChipChoice &choice);

/// An object for the host with the images and the tables of the program's kernels
/// (lowering/target/Backend.h).
llvm::Expected<target::ObjectCode> emitTables(mlir::gpu::GPUModuleOp kernels,
                                              llvm::ArrayRef<Image> images,
                                              const target::Processor &processor);

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_DEVICECODE_H
