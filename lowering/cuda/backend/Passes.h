// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes from outlined kernels to code of CUDA devices and of the host that launches it.

#ifndef SHARDC_LOWERING_CUDA_BACKEND_PASSES_H
#define SHARDC_LOWERING_CUDA_BACKEND_PASSES_H

#include "dialects/interfaces/PassStatistic.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/Pass.h"

namespace shardc::cuda {

#define GEN_PASS_DECL
#include "lowering/cuda/backend/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lowering/cuda/backend/Passes.h.inc"

/// Kernels on linalg to their device-launch form (docs/cuda.md).
void buildKernelPipeline(mlir::OpPassManager &pm);
/// A module of kernels in device-launch form, and of entries, to LLVM's dialect.
void buildLlvmPipeline(mlir::OpPassManager &pm);
void registerPipelines();

} // namespace shardc::cuda

#endif // SHARDC_LOWERING_CUDA_BACKEND_PASSES_H
