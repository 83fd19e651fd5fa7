// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "pipeline/Passes.h"
#include "pipeline/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace shardc;

namespace {

llvm::cl::ValuesClass stages() {
  return llvm::cl::values(
      clEnumValN(Stage::Imported, "imported", "global shapes, single-device semantics"),
      clEnumValN(Stage::Placed, "placed", "every tensor has a layout"),
      clEnumValN(Stage::Local, "local", "one rank's program with collectives"),
      clEnumValN(Stage::Scheduled, "scheduled", "collectives are asynchronous, in one order"),
      clEnumValN(Stage::Specialized, "specialized", "one function for each kind of rank"),
      clEnumValN(Stage::Planned, "planned", "buffers have places in the arena"),
      clEnumValN(Stage::Lowered, "lowered", "LLVM"));
}

struct WholeOptions : PipelineOptions {
  Option<Stage> from{*this, "from", llvm::cl::desc("the stage that the module is in"),
                     llvm::cl::init(Stage::Imported), stages()};
  Option<Stage> to{*this, "to", llvm::cl::desc("the stage to stop at"),
                   llvm::cl::init(Stage::Lowered), stages()};
};

/// The way from one stage to the next, with the options that it takes.
template <typename... Groups>
void registerStep(StringRef name, StringRef help, Stage from, Stage to) {
  using Taken = StageOptions<Groups...>;
  registerPassPipeline(
      name, help,
      [=](OpPassManager &pm, StringRef text, function_ref<LogicalResult(const Twine &)>) {
        // The first is for what this step does not take.
        Taken taken;
        PipelineOptions options;
        if (failed(taken.parseFromString(text)) || failed(options.parseFromString(text)))
          return failure();
        buildPipeline(pm, options, from, to);
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> handle) { handle(Taken()); });
}

} // namespace

void shardc::registerPipelines() {
  registerShardcPipelinePasses();
  registerPassPipeline(
      "shardc-compile", "from any stage to any later one: what shardc compile runs",
      [](OpPassManager &pm, StringRef text, function_ref<LogicalResult(const Twine &)> error) {
        WholeOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        if (options.to < options.from)
          return error("shardc-compile: the stage '" + stringifyStage(options.to) +
                       "' comes before '" + stringifyStage(options.from) + "'");
        buildPipeline(pm, options, options.from, options.to);
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> handle) { handle(WholeOptions()); });
  registerStep<PlacementOptions, TrainingOptions, SizeOptions, MemoryOptions>(
      "shardc-place", "imported -> placed: apply a plan, propagate, place, verify", Stage::Imported,
      Stage::Placed);
  registerStep<SizeOptions, MemoryOptions>(
      "shardc-localize", "placed -> local: plan redistributions, localise, clean up, verify",
      Stage::Placed, Stage::Local);
  registerStep<KeepingOptions, CollectiveOptions, SizeOptions, MemoryOptions, TargetOptions>(
      "shardc-optimize-collectives",
      "local -> scheduled: simplify, recompute, bucket and schedule collectives together, verify",
      Stage::Local, Stage::Scheduled);
  registerStep<CollectiveOptions, SizeOptions, MemoryOptions, SpecializationOptions>(
      "shardc-specialize",
      "scheduled -> specialized: predict, make one function for each kind of rank, verify",
      Stage::Scheduled, Stage::Specialized);
  registerStep<CollectiveOptions, SizeOptions, MemoryOptions, TargetOptions>(
      "shardc-plan-memory", "specialized -> planned: kernels, and buffers in an arena, verify",
      Stage::Specialized, Stage::Planned);
  registerStep<SizeOptions, MemoryOptions>("shardc-lower-planned",
                                           "planned -> lowered: LLVM's dialect, verify",
                                           Stage::Planned, Stage::Lowered);
  registerStep<CollectiveOptions, SizeOptions, MemoryOptions, TargetOptions>(
      "shardc-lower", "specialized -> lowered: kernels, memory, LLVM's dialect, verify",
      Stage::Specialized, Stage::Lowered);
}
