// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/Passes.h"
#include "passes/redistribute/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void shardc::buildLocalizePipeline(OpPassManager &manager) {
  manager.addPass(createVerifyStage({Stage::Placed}));
  manager.addPass(createPlanRedistributions());
  manager.addPass(createLocalize());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createVerifyStage({Stage::Local}));
}

void shardc::registerLocalizePipeline() {
  PassPipelineRegistration<>("shardc-localize",
                             "placed -> local: plan redistributions, localise, clean up, verify",
                             buildLocalizePipeline);
}
