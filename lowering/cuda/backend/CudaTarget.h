// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef SHARDC_LOWERING_CUDA_BACKEND_CUDATARGET_H
#define SHARDC_LOWERING_CUDA_BACKEND_CUDATARGET_H

#include "lowering/target/Backend.h"

namespace shardc::cuda {

/// "cuda" is all chips that shardc has code for, "cuda:sm_80,sm_90" some of them, "cuda:emulated"
/// the device of tools/cuda-emulator. The one property is `chip`, which is what follows the colon.
/// Kernels are images that the runtime loads; the host program launches them by number.
std::unique_ptr<target::Backend> createBackend();

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_CUDATARGET_H
