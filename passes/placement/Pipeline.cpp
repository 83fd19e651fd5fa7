// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/Passes.h"

#include "dialects/aten/passes/Passes.h"
#include "passes/verify/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace shardc {
namespace {

/// The options of dist-apply-plan, for the pipeline.
struct PlacePipelineOptions : PassPipelineOptions<PlacePipelineOptions> {
  Option<std::string> mesh{*this, "mesh", llvm::cl::desc("Mesh axes, e.g. dp=2,tp=4")};
  Option<std::string> plan{*this, "plan", llvm::cl::desc("Path of a YAML plan")};
  ListOption<std::string> places{*this, "place", llvm::cl::desc("A line of a plan")};
};

} // namespace

void buildPlacePipeline(OpPassManager &passes, const ApplyPlanOptions &plan) {
  passes.addPass(createVerifyStage({Stage::Imported}));
  passes.addPass(createApplyPlan(plan));
  // Before views of views become one, which says less about where dims come from.
  passes.addNestedPass<func::FuncOp>(aten::createAtenUnflattenProducts());
  // Constants and masks fold before they are placed: what is the same on all ranks needs no plan.
  passes.addPass(createCanonicalizerPass());
  passes.addNestedPass<func::FuncOp>(aten::createAtenFoldMasks());
  passes.addPass(createCSEPass());
  passes.addNestedPass<func::FuncOp>(createPropagateShardings());
  passes.addNestedPass<func::FuncOp>(createPlaceTensors({/*wishes=*/false}));
}

void registerPlacePipeline() {
  PassPipelineRegistration<PlacePipelineOptions>(
      "shardc-place", "imported -> placed: apply a plan, propagate, place",
      [](OpPassManager &passes, const PlacePipelineOptions &options) {
        ApplyPlanOptions plan;
        plan.mesh = options.mesh;
        plan.plan = options.plan;
        plan.places.assign(options.places.begin(), options.places.end());
        buildPlacePipeline(passes, plan);
      });
}

} // namespace shardc
