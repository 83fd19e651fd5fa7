// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/Passes.h"

#include "dialects/exec/Exec.h"
#include "lowering/artifact/Passes.h"
#include "lowering/cpu/CpuTarget.h"
#include "lowering/cpu/Passes.h"
#include "lowering/cuda/attention/Passes.h"
#include "lowering/cuda/backend/CudaTarget.h"
#include "lowering/cuda/backend/Passes.h"
#include "lowering/cuda/kernels/Passes.h"
#include "lowering/cuda/scatter/Passes.h"
#include "lowering/host/Passes.h"
#include "lowering/linalg/Passes.h"
#include "lowering/memory/Passes.h"
#include "lowering/target/Passes.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

void shardc::registerTargets() {
  static bool done = [] {
    target::registerBackend(cpu::createBackend());
    target::registerBackend(cuda::createBackend());
    return true;
  }();
  (void)done;
}

void shardc::registerLoweringPasses() {
  target::registerShardcTargetPasses();
  registerShardcLinalgPasses();
  memory::registerShardcMemoryPasses();
  host::registerShardcHostPasses();
  cpu::registerShardcCpuPasses();
  cpu::registerPipelines();
  cuda::registerShardcCudaAttentionPasses();
  cuda::registerShardcCudaKernelsPasses();
  cuda::registerShardcCudaScatterPasses();
  cuda::registerShardcCudaPasses();
  cuda::registerPipelines();
  artifact::registerShardcArtifactPasses();
}

void shardc::registerLoweringDialects(mlir::DialectRegistry &registry) {
  registry.insert<exec::ExecDialect, mlir::DLTIDialect, mlir::gpu::GPUDialect,
                  mlir::NVVM::NVVMDialect, mlir::nvgpu::NVGPUDialect, mlir::ub::UBDialect>();
}
