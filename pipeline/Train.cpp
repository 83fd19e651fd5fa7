// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Passes.h"

#include "dialects/dist/FunctionAttributes.h"
#include "passes/gradient/partial/Passes.h"
#include "passes/placement/Passes.h"
#include "passes/training/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

namespace shardc {
#define GEN_PASS_DEF_TRAIN
#include "pipeline/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct TrainPass : shardc::impl::TrainBase<TrainPass> {
  using TrainBase::TrainBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    OpPassManager pm(ModuleOp::getOperationName());
    addPasses(pm);
    pm.getDependentDialects(registry);
  }

  void runOnOperation() override {
    if (!getOperation()->hasAttr(dist::kTrainAttr))
      return;
    OpPassManager pm(ModuleOp::getOperationName());
    addPasses(pm);
    if (failed(runPipeline(pm, getOperation())))
      return signalPassFailure();
    getOperation()->removeAttr(dist::kTrainAttr);
    ++numPrograms;
  }

private:
  void addPasses(OpPassManager &pm) const {
    pm.addPass(createTrainStep());
    pm.addPass(createInitParameters());
    pm.addPass(createVerifyStage({Stage::HalfPlaced}));
    pm.addNestedPass<func::FuncOp>(createPropagateShardings());
    pm.addNestedPass<func::FuncOp>(createPlaceTensors({/*preferences=*/false}));
    pm.addNestedPass<func::FuncOp>(createRewritePartialGradients({partialGradients}));
    pm.addNestedPass<func::FuncOp>(createWidenReductions());
    pm.addPass(createDelayGradientSums());
  }
};

} // namespace
