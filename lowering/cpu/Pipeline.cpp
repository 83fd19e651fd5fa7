// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cpu/Passes.h"
#include "lowering/host/KernelPipeline.h"
#include "passes/verify/Passes.h"

#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace shardc;

void shardc::cpu::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createVerifyKernels());
  pm.addNestedPass<func::FuncOp>(createCpuTileKernels());
  pm.addPass(createVerifyKernels());
  OpPassManager &kernel = pm.nest<func::FuncOp>();
  kernel.addPass(createCpuApproximateMath());
  kernel.addPass(createConvertLinalgToLoopsPass());
  host::addSimplifiedLoops(kernel);
  pm.addPass(createVerifyKernels());
}

void shardc::cpu::buildLlvmPipeline(OpPassManager &pm) {
  pm.addPass(createCpuOutlineParallel());
  pm.addPass(createVerifyKernels());
  host::addControlFlow(pm.nest<func::FuncOp>());
  pm.addPass(createCpuConvertToLlvm());
  pm.addPass(createVerifyKernels());
}

void shardc::cpu::registerPipelines() {
  host::registerKernelPasses();
  registerPass([] { return createConvertLinalgToLoopsPass(); });
  PassPipelineRegistration<>("cpu-lower-kernels",
                             "Kernels on linalg to loops over memory: tile, approximate, loops",
                             buildKernelPipeline);
  PassPipelineRegistration<>("cpu-lower-to-llvm", "Loops over memory to LLVM's dialect",
                             buildLlvmPipeline);
}
