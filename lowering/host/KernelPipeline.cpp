// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/host/KernelPipeline.h"

#include "lowering/linalg/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace shardc::host {

void addKernelsToLinalg(OpPassManager &module) {
  OpPassManager &kernels = module.nest<func::FuncOp>();
  kernels.addPass(createAtenToLinalg());
  kernels.addPass(createFuseKernelOps());
}

void addSimplifiedLoops(OpPassManager &function) {
  function.addPass(memref::createFoldMemRefAliasOpsPass());
  function.addPass(createCanonicalizerPass());
  function.addPass(createCSEPass());
  function.addPass(createLoopInvariantCodeMotionPass());
}

void addControlFlow(OpPassManager &function) {
  function.addPass(memref::createExpandStridedMetadataPass());
  function.addPass(createLowerAffinePass());
  function.addPass(createSCFToControlFlowPass());
  function.addPass(createCanonicalizerPass());
  function.addPass(createCSEPass());
}

void registerKernelPasses() {
  registerPass([] { return memref::createFoldMemRefAliasOpsPass(); });
  registerPass([] { return memref::createExpandStridedMetadataPass(); });
  registerPass([] { return createLowerAffinePass(); });
  registerPass([] { return createSCFToControlFlowPass(); });
}

} // namespace shardc::host
