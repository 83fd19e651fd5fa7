// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Pipeline.h"

#include "dialects/aten/passes/Passes.h"
#include "lowering/artifact/Passes.h"
#include "lowering/host/Passes.h"
#include "lowering/linalg/Passes.h"
#include "lowering/memory/Passes.h"
#include "lowering/target/Passes.h"
#include "passes/collectives/Passes.h"
#include "passes/gradient/Passes.h"
#include "passes/gradient/partial/Passes.h"
#include "passes/localize/Passes.h"
#include "passes/placement/Passes.h"
#include "passes/recompute/Passes.h"
#include "passes/redistribute/Passes.h"
#include "passes/specialize/Passes.h"
#include "passes/training/Passes.h"
#include "passes/verify/Passes.h"
#include "pipeline/Passes.h"
#include "pipeline/Steps.h"
#include "support/ByteSize.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace shardc;

static void place(OpPassManager &pm, const PipelineOptions &options) {
  ApplyPlanOptions plan;
  plan.mesh = options.mesh;
  plan.meshes.assign(options.otherMeshes.begin(), options.otherMeshes.end());
  plan.plan = options.plan;
  plan.places.assign(options.places.begin(), options.places.end());
  plan.random = options.random;
  plan.trains.assign(options.trains.begin(), options.trains.end());
  pm.addPass(createApplyPlan(plan));
  // Before views of views become one, which says less about where dims come from.
  pm.addNestedPass<func::FuncOp>(aten::createAtenUnflattenProducts());
  // Constants and masks fold before they are placed: what is the same on all ranks needs no plan.
  pm.addPass(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(aten::createAtenUndoRowOrders());
  pm.addNestedPass<func::FuncOp>(aten::createAtenFoldMasks());
  pm.addNestedPass<func::FuncOp>(aten::createAtenIndexProducts());
  pm.addNestedPass<func::FuncOp>(aten::createAtenNarrowFourier());
  pm.addPass(createCSEPass());
  // Layers that compute equal masks share one by now.
  aten::AtenRecognizeNeighborhoodsOptions neighborhoods;
  neighborhoods.mode = options.neighborhoods;
  pm.addNestedPass<func::FuncOp>(aten::createAtenRecognizeNeighborhoods(neighborhoods));
  pm.addPass(createCSEPass());
  pm.addPass(createLowerPrecision());
  pm.addNestedPass<func::FuncOp>(createSplitTransforms());
  pm.addNestedPass<func::FuncOp>(createDispatchRows());
  pm.addNestedPass<func::FuncOp>(createPropagateShardings());
  pm.addNestedPass<func::FuncOp>(createPlaceTensors({/*preferences=*/false}));
  pm.addPass(createWarnUnsharded());
}

/// The backward is placed around the forward, whose layouts are final by then.
static void differentiate(OpPassManager &pm, const PipelineOptions &options) {
  if (options.gradients.empty())
    return;
  DifferentiateOptions differentiate;
  llvm::append_range(differentiate.losses, textsOf(options.gradients));
  pm.addPass(createDifferentiate(differentiate));
  pm.addPass(createVerifyStage({Stage::HalfPlaced}));
  pm.addNestedPass<func::FuncOp>(createPropagateShardings());
  pm.addNestedPass<func::FuncOp>(createPlaceTensors({/*preferences=*/false}));
  pm.addNestedPass<func::FuncOp>(createRewritePartialGradients({options.partialGradients}));
}

static void localize(OpPassManager &pm, const PipelineOptions &options) {
  PlanRedistributionsOptions redistributions;
  redistributions.topology = options.topology;
  pm.addPass(createPlanRedistributions(redistributions));
  pm.addNestedPass<func::FuncOp>(createKeepOwnRows());
  pm.addPass(createLocalize());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

static void simplify(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createSimplifyCollectives({options.topology}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void shardc::addSchedule(OpPassManager &pm, const PipelineOptions &options,
                         const ScheduleLimits &limits) {
  if (options.keepCollectives) {
    pm.addPass(createVerifySchedule());
    return;
  }
  // Moves that are judged by the schedule which follows them.
  auto asScheduled = [&](auto move) {
    move.topology = options.topology;
    move.memoryLimit = limits.memoryLimit;
    move.caps = options.bucketCaps;
    move.bucket = options.bucket;
    move.policy = options.policy;
    move.robust = options.robust;
    move.mixedDtype = options.mixedDtype;
    move.flat = options.bucketForm != memory::BucketForm::Packed;
    return move;
  };
  if (limits.mayMove && options.ringAttention != "off") {
    RingAttentionOptions rings = asScheduled(RingAttentionOptions());
    rings.mode = options.ringAttention;
    pm.addPass(createRingAttention(rings));
  }
  if (limits.mayMove && options.splitWindows != "off") {
    SplitWindowsOptions windows = asScheduled(SplitWindowsOptions());
    windows.mode = options.splitWindows;
    pm.addPass(createSplitWindows(windows));
  }
  if (limits.mayMove && options.bucket) {
    MergeExchangesOptions exchanges;
    exchanges.topology = options.topology;
    pm.addPass(createMergeExchanges(exchanges));
  }
  if (limits.mayMove && options.chunkCollectives != "off") {
    ChunkCollectivesOptions chunk = asScheduled(ChunkCollectivesOptions());
    chunk.chunks = options.chunkCollectives;
    pm.addPass(createChunkCollectives(chunk));
  }
  if (limits.mayMove && options.splitNodes != "off") {
    SplitNodesOptions split = asScheduled(SplitNodesOptions());
    split.mode = options.splitNodes;
    pm.addPass(createSplitNodes(split));
  }
  ScheduleCollectivesOptions schedule;
  schedule.bucket = options.bucket && limits.mayMove;
  schedule.reorder = options.reorder && limits.mayMove;
  schedule.caps = options.bucketCaps;
  schedule.topology = options.topology;
  schedule.memoryLimit = limits.memoryLimit;
  schedule.mixedDtype = options.mixedDtype;
  schedule.policy = options.policy;
  schedule.robust = options.robust;
  schedule.scaleHalf = options.scaleHalf;
  // Otherwise the runtime takes the tensors of a bucket where they are.
  schedule.flat = options.bucketForm != memory::BucketForm::Packed;
  schedule.bestEffort = limits.bestEffort;
  pm.addPass(createScheduleCollectives(schedule));
  pm.addPass(createVerifySchedule());
}

void shardc::addSpecialize(OpPassManager &pm, const PipelineOptions &options) {
  PredictTimelineOptions predict;
  predict.topology = options.topology;
  pm.addPass(createPredictTimeline(predict));
  SpecializeOptions specialize;
  if (options.bindSizes)
    specialize.bind = textsOf(options.sizes);
  specialize.bindTypical = options.bindSizes;
  pm.addPass(createSpecialize(specialize));
  pm.addPass(createVerifySchedule());
}

void shardc::addPlanMemory(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(target::createSetTarget({options.target}));
  pm.addPass(artifact::createDescribeProgram());
  pm.addNestedPass<func::FuncOp>(aten::createAtenExpandConvolutions());
  pm.addNestedPass<func::FuncOp>(aten::createAtenExpandFourier());
  pm.addNestedPass<func::FuncOp>(createDecomposeForKernels());
  pm.addPass(createFormKernels());
  pm.addPass(memory::createAssignBuffers());
  pm.addPass(memory::createVerifyBuffers());
  memory::PackBucketsOptions buckets;
  buckets.form = options.bucketForm;
  pm.addPass(memory::createPackBuckets(buckets));
  pm.addPass(memory::createUpdateInPlace());
  pm.addPass(memory::createMergeKernels());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(memory::createPlanArena());
  pm.addPass(memory::createVerifyBuffers());
  pm.addPass(memory::createVerifySequence());
  pm.addPass(memory::createAccountMemory());
}

RecomputeOptions shardc::recomputeOptions(const PipelineOptions &options) {
  RecomputeOptions recompute;
  llvm::append_range(recompute.modules, options.recompute);
  recompute.reshardAfterForward = options.reshardAfterForward;
  recompute.topology = options.topology;
  return recompute;
}

/// What the backward computes again, behind the last pass that merges equal ops, and the order of
/// what is left. A memory limit is held against planned memory.
static void recomputeAndSchedule(OpPassManager &pm, const PipelineOptions &options,
                                 bool bestEffort) {
  std::optional<uint64_t> limit = parseByteSize(options.memoryLimit.getValue());
  // What is wrong with a limit is told by the scheduler, with all else that is.
  if (!limit || *limit == 0) {
    pm.addPass(createRecompute(recomputeOptions(options)));
    addSchedule(pm, options, {options.memoryLimit, /*mayMove=*/true, bestEffort});
    return;
  }
  PipelineOptions copy;
  copy.copyOptionValuesFrom(options);
  copy.bestEffort = bestEffort;
  FitMemoryOptions fit;
  llvm::raw_string_ostream text(fit.pipeline);
  copy.print(text);
  pm.addPass(createFitMemory(fit));
}

/// The target has its own way from kernels to code; the host program is the same for all.
static void lowerPlanned(OpPassManager &pm) {
  pm.addPass(target::createLowerToTarget());
  pm.addPass(host::createEmitProgram());
}

static void verify(OpPassManager &pm, Stage stage) { pm.addPass(createVerifyStage({stage})); }

void shardc::buildPipeline(OpPassManager &pm, const PipelineOptions &options, Stage from,
                           Stage to) {
  // A local program may have collectives in flight already, whoever made them.
  pm.addPass(createVerifyStage({from, /*orScheduled=*/from == Stage::Local}));
  if (from == to || from == Stage::Lowered)
    return;
  AssumeSizesOptions sizes;
  sizes.sizes = textsOf(options.sizes);
  sizes.largest = !options.memoryLimit.empty();
  pm.addPass(createAssumeSizes(sizes));
  if (from <= Stage::Imported && to > Stage::Imported) {
    place(pm, options);
    differentiate(pm, options);
    TrainOptions train;
    train.partialGradients = options.partialGradients;
    pm.addPass(createTrain(train));
    verify(pm, Stage::Placed);
  } else if (from == Stage::Placed && !options.gradients.empty()) {
    differentiate(pm, options);
    verify(pm, Stage::Placed);
  }
  if (from <= Stage::Placed && to > Stage::Placed) {
    localize(pm, options);
    verify(pm, Stage::Local);
  }
  if (from <= Stage::Local && to > Stage::Local) {
    if (options.simplify && !options.keepCollectives)
      simplify(pm, options);
    if (options.moveProducts && !options.keepCollectives)
      pm.addPass(createMoveProducts());
    // Whoever plans memory says what does not fit, and what takes it.
    bool bestEffort = options.bestEffort || to > Stage::Specialized;
    // What is written for one rank is compiled as it is.
    if (from == Stage::Local && options.keepCollectives)
      addSchedule(pm, options, {options.memoryLimit, /*mayMove=*/true, bestEffort});
    else
      recomputeAndSchedule(pm, options, bestEffort);
    if (!options.keepCollectives)
      verify(pm, Stage::Scheduled);
  }
  if (from <= Stage::Scheduled && to > Stage::Scheduled) {
    // What nobody scheduled here is still to be the same on all ranks.
    if (from == Stage::Scheduled)
      pm.addPass(createVerifySchedule());
    addSpecialize(pm, options);
    verify(pm, Stage::Specialized);
  }
  if (from <= Stage::Specialized && to > Stage::Specialized) {
    addPlanMemory(pm, options);
    pm.addPass(artifact::createCheckMemory({options.memoryLimit}));
    pm.addPass(createVerifyKernels());
    verify(pm, Stage::Planned);
  }
  if (from <= Stage::Planned && to > Stage::Planned) {
    lowerPlanned(pm);
    verify(pm, Stage::Lowered);
  }
}
