// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void shardc::cpu::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createVerifyKernels());
  pm.addNestedPass<func::FuncOp>(createCpuTileKernels());
  pm.addPass(createVerifyKernels());
  OpPassManager &kernel = pm.nest<func::FuncOp>();
  kernel.addPass(createCpuApproximateMath());
  kernel.addPass(createConvertLinalgToLoopsPass());
  kernel.addPass(memref::createFoldMemRefAliasOpsPass());
  kernel.addPass(createCanonicalizerPass());
  kernel.addPass(createCSEPass());
  kernel.addPass(createLoopInvariantCodeMotionPass());
  pm.addPass(createVerifyKernels());
}

void shardc::cpu::buildLlvmPipeline(OpPassManager &pm) {
  pm.addPass(createCpuOutlineParallel());
  pm.addPass(createVerifyKernels());
  OpPassManager &function = pm.nest<func::FuncOp>();
  function.addPass(memref::createExpandStridedMetadataPass());
  function.addPass(createLowerAffinePass());
  function.addPass(createSCFToControlFlowPass());
  function.addPass(createCanonicalizerPass());
  function.addPass(createCSEPass());
  pm.addPass(createCpuConvertToLlvm());
  pm.addPass(createVerifyKernels());
}

/// Passes of MLIR's, so that a pipeline that was printed (in a crash reproducer) is read again.
static void registerUpstreamPasses() {
  registerPass([] { return createConvertLinalgToLoopsPass(); });
  registerPass([] { return memref::createFoldMemRefAliasOpsPass(); });
  registerPass([] { return memref::createExpandStridedMetadataPass(); });
  registerPass([] { return createLowerAffinePass(); });
  registerPass([] { return createSCFToControlFlowPass(); });
}

void shardc::cpu::registerPipelines() {
  registerUpstreamPasses();
  PassPipelineRegistration<>("cpu-lower-kernels",
                             "Kernels on linalg to loops over memory: tile, approximate, loops",
                             buildKernelPipeline);
  PassPipelineRegistration<>("cpu-lower-to-llvm", "Loops over memory to LLVM's dialect",
                             buildLlvmPipeline);
}
