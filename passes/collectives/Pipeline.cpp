// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace shardc;

void shardc::buildOptimizeCollectivesPipeline(OpPassManager &manager,
                                              const OptimizeCollectivesOptions &options) {
  manager.addPass(createVerifyStage({Stage::Local, /*orScheduled=*/true}));
  if (options.simplify) {
    manager.addPass(createSimplifyCollectives({options.topology}));
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  }
  ScheduleCollectivesOptions schedule;
  schedule.bucket = options.bucket;
  schedule.reorder = options.reorder;
  schedule.caps = options.caps;
  schedule.topology = options.topology;
  schedule.memoryLimit = options.memoryLimit;
  schedule.sizes.assign(options.sizes.begin(), options.sizes.end());
  schedule.mixedDtype = options.mixedDtype;
  schedule.scaleHalf = options.scaleHalf;
  schedule.flat = options.flat;
  schedule.bestEffort = options.bestEffort;
  manager.addPass(createScheduleCollectives(schedule));
  manager.addPass(createVerifySchedule());
  manager.addPass(createVerifyStage({Stage::Scheduled}));
}

void shardc::registerOptimizeCollectivesPipeline() {
  PassPipelineRegistration<OptimizeCollectivesOptions>(
      "shardc-optimize-collectives",
      "local -> scheduled: simplify, bucket and schedule collectives together, verify",
      buildOptimizeCollectivesPipeline);
}
