// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/backend/Passes.h"
#include "lowering/cuda/kernels/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

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
  function.addPass(memref::createFoldMemRefAliasOpsPass());
  function.addPass(createCanonicalizerPass());
  function.addPass(createCSEPass());
  function.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createCudaMergeFunctions());
  pm.addPass(createVerifyKernels());

  OpPassManager &stub = pm.nest<func::FuncOp>();
  stub.addPass(memref::createExpandStridedMetadataPass());
  stub.addPass(createLowerAffinePass());
  stub.addPass(createSCFToControlFlowPass());
  stub.addPass(createCanonicalizerPass());
  stub.addPass(createCSEPass());
  pm.addPass(createCudaConvertHost());

  OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
  device.addPass(createCudaLowerChecks());
  device.addPass(createCudaExpandDeviceOps());
  device.addPass(math::createMathExtendToSupportedTypes());
  device.addPass(memref::createExpandStridedMetadataPass());
  device.addPass(createLowerAffinePass());
  device.addPass(createSCFToControlFlowPass());
  device.addPass(createCanonicalizerPass());
  device.addPass(createCSEPass());
  device.addPass(createCudaConvertDevice());
}

/// Passes of MLIR's, so that a pipeline that was printed (in a crash reproducer) is read again.
static void registerUpstreamPasses() {
  registerPass([] { return math::createMathExtendToSupportedTypes(); });
}

void shardc::cuda::registerPipelines() {
  registerUpstreamPasses();
  PassPipelineRegistration<>("cuda-lower-kernels", "Kernels on linalg to launches on a device",
                             buildKernelPipeline);
  PassPipelineRegistration<>("cuda-lower-to-llvm",
                             "Launches on a device to LLVM's dialect, for device and host",
                             buildLlvmPipeline);
}
