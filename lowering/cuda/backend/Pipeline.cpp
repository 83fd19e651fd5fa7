// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/Passes.h"
#include "lowering/cuda/kernels/Passes.h"
#include "lowering/host/KernelPipeline.h"
#include "passes/verify/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace shardc;

void shardc::cuda::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createVerifyKernels());
  OpPassManager &kernel = pm.nest<func::FuncOp>();
  kernel.addPass(createCudaTileKernels());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  pm.addPass(createVerifyKernels());
}

void shardc::cuda::buildLlvmPipeline(OpPassManager &pm) {
  pm.addPass(createCudaOutlineKernels());
  OpPassManager &function = pm.nest<gpu::GPUModuleOp>().nest<gpu::GPUFuncOp>();
  // Positions are arithmetic before indices are narrowed.
  function.addPass(memref::createFoldMemRefAliasOpsPass());
  function.addPass(memref::createExpandStridedMetadataPass());
  function.addPass(createLowerAffinePass());
  host::addSimplifiedLoops(function);
  pm.addPass(createCudaMergeFunctions());
  pm.addPass(createVerifyKernels());
  pm.addPass(createCudaNarrowIndices());

  host::addControlFlow(pm.nest<func::FuncOp>());
  pm.addPass(createCudaConvertHost());

  OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
  device.addPass(createCudaLowerChecks());
  device.addPass(createCudaExpandDeviceOps());
  device.addPass(math::createMathExtendToSupportedTypes());
  host::addControlFlow(device);
  device.addPass(createCudaConvertDevice());
}

void shardc::cuda::registerPipelines() {
  host::registerKernelPasses();
  registerPass([] { return math::createMathExtendToSupportedTypes(); });
  PassPipelineRegistration<>("cuda-lower-kernels", "Kernels on linalg to launches on a device",
                             buildKernelPipeline);
  PassPipelineRegistration<>("cuda-lower-to-llvm",
                             "Launches on a device to LLVM's dialect, for device and host",
                             buildLlvmPipeline);
}
