// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every option of the way from a model to a program, declared once: name, default and help. The
// pipelines of shard-opt (`--shardc-place=mesh=tp=4`) and the flags of shardc (`--mesh tp=4`) are
// made from these.
//
// To add one: declare it in the group of the stage that it changes, and give it to the pass in
// Pipeline.cpp.

#ifndef SHARDC_PIPELINE_OPTIONS_H
#define SHARDC_PIPELINE_OPTIONS_H

#include "dialects/interfaces/TextOption.h"
#include "lowering/memory/Passes.h"
#include "passes/collectives/core/Optimize.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/gradient/partial/Passes.h"
#include "passes/recompute/Passes.h"

#include "mlir/Pass/PassOptions.h"

namespace shardc {

/// Options that belong together; an object of a struct that derives from several groups has those
/// of all.
struct OptionGroup : virtual mlir::detail::PassOptions {
  /// All options of the object, by name: for whoever makes flags of them.
  std::vector<llvm::cl::Option *> all();
};

/// imported -> placed.
struct PlacementOptions : virtual OptionGroup {
  Option<std::string> mesh{
      *this, "mesh",
      llvm::cl::desc("mesh axes, outermost first, e.g. dp=2,tp=2, or with a list of ranks "
                     "dp=2,tp=2,devices=[3,2,1,0]; overrides the plan's"),
      llvm::cl::value_desc("axes")};
  ListOption<TextOption> otherMeshes{
      *this, "other-mesh",
      llvm::cl::desc("a further mesh, which inputs and outputs may be on, e.g. "
                     "'readers:io=2,devices=[4,5]'; may be repeated"),
      llvm::cl::value_desc("mesh")};
  Option<std::string> plan{*this, "plan", llvm::cl::desc("placement plan (YAML; docs/plans.md)"),
                           llvm::cl::value_desc("file")};
  ListOption<TextOption> places{*this, "place",
                                llvm::cl::desc("one line of a plan, e.g. 'module:*.q_proj=colwise' "
                                               "or 'param:W=dp:S(0),tp:S(1)'; may be repeated"),
                                llvm::cl::value_desc("spec")};
  Option<std::string> random{
      *this, "random",
      llvm::cl::desc("how ranks share random numbers: default (each element has its number, on "
                     "every mesh), dtensor (by PyTorch's offsets) or per-rank; overrides the "
                     "plan's (docs/random.md)"),
      llvm::cl::value_desc("mode")};
  Option<std::string> neighborhoods{
      *this, "neighborhoods",
      llvm::cl::desc(
          "compute attention whose mask leaves each position a window as neighborhood attention: "
          "auto (where windows are small enough, the default), all, or off"),
      llvm::cl::value_desc("which"), llvm::cl::init("auto")};
};

/// imported -> placed: the training step.
struct TrainingOptions : virtual OptionGroup {
  ListOption<TextOption> trains{
      *this, "train",
      llvm::cl::desc("add a training step: one key of the section 'train' of a plan, e.g. "
                     "optimizer=adamw, optimizer.weight_decay=0.1 or zero=1 (docs/training.md); "
                     "may be repeated"),
      llvm::cl::value_desc("key=value")};
};

/// placed, and still placed: what else the program computes.
struct GradientOptions : virtual OptionGroup {
  ListOption<TextOption> gradients{
      *this, "gradients",
      llvm::cl::desc(
          "add the entry 'gradients': the outputs, and the gradients of this output (its "
          "name or number, the loss) for all parameters; may be repeated, for their sum"),
      llvm::cl::value_desc("loss")};
  Option<PartialGradients> partialGradients{
      *this, "partial-gradients",
      llvm::cl::desc("what a gradient becomes of which the model made the value partial (G3)"),
      llvm::cl::values(
          clEnumValN(PartialGradients::Off, "off", "partial, which is reduced again later"),
          clEnumValN(PartialGradients::Replicate, "replicate", "replicated"),
          clEnumValN(PartialGradients::Cheapest, "cheapest", "what moves the fewest bytes")),
      llvm::cl::init(PartialGradients::Replicate)};
};

/// All stages: what is assumed where something is estimated.
struct SizeOptions : virtual OptionGroup {
  ListOption<TextOption> sizes{
      *this, "size",
      llvm::cl::desc("what a dynamic size is taken to be where times and memory are predicted, "
                     "e.g. batch=8 (default: 128, or the nearest in its range); may be repeated"),
      llvm::cl::value_desc("symbol=value")};
};

/// All stages: what must hold.
struct MemoryOptions : virtual OptionGroup {
  Option<std::string> memoryLimit{
      *this, "memory-limit",
      llvm::cl::desc("the most memory that a rank may need; bytes, or with a unit, e.g. 800MiB or "
                     "2GB. Collectives are scheduled under it, a backward computes again what it "
                     "has no room to keep, and a program that needs more is refused. Dynamic sizes "
                     "are as large as they may be, or as --size says"),
      llvm::cl::value_desc("bytes")};
};

/// local, and still local: what the backward keeps of the forward.
struct KeepingOptions : virtual OptionGroup {
  ListOption<TextOption> recompute{
      *this, "recompute",
      llvm::cl::desc("modules whose forward the backward computes again instead of keeping what it "
                     "makes, e.g. 'model.layers.*' (activation checkpointing; as recompute: in a "
                     "plan); may be repeated"),
      llvm::cl::value_desc("pattern")};
  Option<ReshardAfterForward> reshardAfterForward{
      *this, "reshard-after-forward",
      llvm::cl::desc("what the backward does with weights that the forward has gathered"),
      llvm::cl::values(
          clEnumValN(ReshardAfterForward::Auto, "auto",
                     "as the plan says; else keep them, or gather those again that --memory-limit "
                     "asks for"),
          clEnumValN(ReshardAfterForward::True, "true", "gather them again"),
          clEnumValN(ReshardAfterForward::False, "false", "keep them")),
      llvm::cl::init(ReshardAfterForward::Auto)};
};

/// local -> scheduled: what merging and ordering collectives may do, and by what it is judged.
struct SearchOptions : virtual OptionGroup {
  Option<std::string> topology{
      *this, "topology",
      llvm::cl::desc("cost model of the machine: h100-8, h100-64, h200-8, cpu-local, sim-v1, or "
                     "the file of a target description (default: cpu-local; for an exported graph "
                     "that is simulated h100-64, with --durations sim-v1)"),
      llvm::cl::value_desc("name"), llvm::cl::init(std::string(cost::kDefaultModel))};
  Option<std::string> bucketCaps{
      *this, "bucket-caps",
      llvm::cl::desc("largest sizes of buckets in MiB, e.g. 25; a list gives the first buckets "
                     "their own, e.g. 1,25; auto: what the cost model says (the default)"),
      llvm::cl::value_desc("sizes"), llvm::cl::init("auto")};
  Option<bool> bucket{*this, "bucket",
                      llvm::cl::desc("merge collectives where it pays (default: true)"),
                      llvm::cl::init(true)};
  Option<bool> reorder{
      *this, "reorder",
      llvm::cl::desc("start collectives early and wait for them late (default: true)"),
      llvm::cl::init(true)};
  Option<collectives::SchedulingPolicy> policy{
      *this, "policy", llvm::cl::desc("how the order of starts and waits is found"),
      llvm::cl::values(
          clEnumValN(collectives::SchedulingPolicy::Search, "search",
                     "the best of many, by the cost model"),
          clEnumValN(collectives::SchedulingPolicy::Defensive, "defensive",
                     "without estimates: the program's order, with starts as early and waits as "
                     "late as data and memory allow, and buckets of 500 MB")),
      llvm::cl::init(collectives::SchedulingPolicy::Search)};
  Option<double> robust{
      *this, "robust",
      llvm::cl::desc(
          "from 0 to 1: how much slower networks, jittering kernels and late ranks count "
          "beside the times of the cost model, for which the step may then be longer by "
          "this part of 1 % (default: 0.5)"),
      llvm::cl::value_desc("weight"), llvm::cl::init(collectives::defaultRobust)};
  Option<bool> mixedDtype{*this, "mixed-dtype",
                          llvm::cl::desc("gathers of different element types may share a bucket")};
  Option<std::string> chunkCollectives{
      *this, "chunk-collectives",
      llvm::cl::desc(
          "take collectives and the products beside them apart into pieces that overlap: "
          "off (the default), auto (where the cost model says that it pays), ring (wherever a "
          "ring of permutes is possible), or a number of pieces, 2 to 64"),
      llvm::cl::value_desc("pieces"), llvm::cl::init("off")};
  Option<std::string> splitNodes{
      *this, "split-nodes",
      llvm::cl::desc(
          "take collectives over several nodes of the target apart into some within nodes and some "
          "between them: off (the default), auto (where the cost model says that it pays), or all "
          "that can be"),
      llvm::cl::value_desc("which"), llvm::cl::init("off")};
};

/// local -> scheduled: what else happens to collectives.
struct CollectiveOptions : SearchOptions {
  Option<bool> keepCollectives{
      *this, "keep-collectives",
      llvm::cl::desc("leave collectives as placement made them: none is merged, moved or removed")};
  Option<memory::BucketForm> bucketForm{
      *this, "bucket-form",
      llvm::cl::desc("how collectives of several tensors are handed to the communicator"),
      llvm::cl::values(clEnumValN(memory::BucketForm::Auto, "auto", "whichever costs less"),
                       clEnumValN(memory::BucketForm::Grouped, "grouped", "as a group of tensors"),
                       clEnumValN(memory::BucketForm::Packed, "packed",
                                  "as one buffer, wherever that is possible")),
      llvm::cl::init(memory::BucketForm::Auto)};
  Option<bool> simplify{*this, "simplify",
                        llvm::cl::desc("simplify collectives by algebra (default: true)"),
                        llvm::cl::init(true)};
  Option<bool> moveProducts{
      *this, "move-products",
      llvm::cl::desc(
          "compute products of gathered rows with replicated weights before the gather, where "
          "that gathers less")};
  Option<std::string> ringAttention{
      *this, "ring-attention",
      llvm::cl::desc(
          "let blocks of keys and values go around a ring of ranks instead of gathering them where "
          "the sequence is sharded: auto (where gathered ones exceed the memory limit, or the cost "
          "model says that it pays, the default), all that can be, balanced (all, and causal ones "
          "with the same work on all ranks), or off"),
      llvm::cl::value_desc("which"), llvm::cl::init("auto")};
  Option<std::string> splitWindows{
      *this, "split-windows",
      llvm::cl::desc(
          "compute what a convolution or pool makes of a rank's own rows apart, while rows of "
          "others arrive: auto (where the cost model says that it pays, the default), all that can "
          "be, or off"),
      llvm::cl::value_desc("which"), llvm::cl::init("auto")};
  Option<bool> scaleHalf{
      *this, "scale-half",
      llvm::cl::desc("averages of f16 become sums between two scalings, for transports that add "
                     "in f16")};
  Option<bool> bestEffort{
      *this, "best-effort",
      llvm::cl::desc("keep the program's order, instead of failing, where no order is found that "
                     "meets the memory limit; shardc compile always does so, and checks the "
                     "limit once memory is planned")};
};

/// scheduled -> specialized.
struct SpecializationOptions : virtual OptionGroup {
  Option<bool> bindSizes{
      *this, "bind-sizes",
      llvm::cl::desc(
          "replace dynamic sizes by constants, the values that --size gives them, for estimates")};
};

/// specialized -> planned.
struct TargetOptions : virtual OptionGroup {
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc("what to compile for: cpu (this machine), or cpu:NAME with a processor name "
                     "of LLVM, e.g. cpu:x86-64-v3"),
      llvm::cl::value_desc("target"), llvm::cl::init("cpu")};
};

/// What the pipeline of one stage takes.
template <typename... Groups>
struct StageOptions : mlir::PassPipelineOptions<StageOptions<Groups...>>, Groups... {};

/// All of them.
struct PipelineOptions
    : StageOptions<GradientOptions, PlacementOptions, TrainingOptions, SizeOptions, MemoryOptions,
                   KeepingOptions, CollectiveOptions, SpecializationOptions, TargetOptions> {};

/// What is wrong with the options by themselves, as "--NAME: ...": found out before anything takes
/// time. Empty where they are right.
std::vector<std::string> checkOptions(const PipelineOptions &options);

} // namespace shardc

#endif // SHARDC_PIPELINE_OPTIONS_H
