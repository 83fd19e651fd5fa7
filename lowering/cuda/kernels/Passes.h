// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From fused kernels on tensors to launches on the device.

#ifndef SHARDC_LOWERING_CUDA_KERNELS_PASSES_H
#define SHARDC_LOWERING_CUDA_KERNELS_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace shardc::cuda {

#define GEN_PASS_DECL
#include "lowering/cuda/kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/cuda/kernels/Passes.h.inc"

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_KERNELS_PASSES_H
