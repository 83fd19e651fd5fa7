// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/Model.h"

#include "dialects/dist/Dist.h"
#include "dialects/dist/FunctionAttributes.h"
#include "importers/Importer.h"
#include "importers/plan/Plan.h"
#include "passes/collectives/Passes.h"
#include "passes/collectives/core/Buckets.h"
#include "passes/cost/core/TargetDescription.h"
#include "passes/placement/Passes.h"
#include "support/archive/Safetensors.h"
#include "tools/Registration.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace shardc {

ModelOptions::ModelOptions(cl::SubCommand &command, cl::OptionCategory &category)
    : model(cl::Positional, cl::Required, cl::desc("MODEL"), cl::sub(command), cl::cat(category)),
      mesh("mesh", cl::desc("mesh axes, outermost first, e.g. dp=2,tp=2; overrides the plan's"),
           cl::value_desc("axes"), cl::sub(command), cl::cat(category)),
      plan("plan", cl::desc("placement plan (YAML; docs/plans.md)"), cl::value_desc("file"),
           cl::sub(command), cl::cat(category)),
      saveStages("save-stages", cl::desc("write the program at every stage to this folder"),
                 cl::value_desc("folder"), cl::sub(command), cl::cat(category)),
      places("place",
             cl::desc("one line of a plan, e.g. 'module:*.q_proj=colwise' or "
                      "'param:W=dp:S(0),tp:S(1)'; may be "
                      "repeated"),
             cl::value_desc("spec"), cl::sub(command), cl::cat(category)),
      inputs("input",
             cl::desc("shape and element type of an input of a TorchScript model, by name or "
                      "position, e.g. x=8x64xf32; traced models have them"),
             cl::value_desc("spec"), cl::sub(command), cl::cat(category)) {}

CollectiveOptions::CollectiveOptions(cl::SubCommand &command, cl::OptionCategory &category)
    : keep("keep-collectives",
           cl::desc("leave collectives as placement made them: none is merged, moved or removed"),
           cl::sub(command), cl::cat(category)),
      topology(
          "topology",
          cl::desc("cost model of the machine: h100-8, h100-64, h200-8, cpu-local, or the file "
                   "of a target description"),
          cl::value_desc("name"), cl::init("cpu-local"), cl::sub(command), cl::cat(category)),
      caps("bucket-caps",
           cl::desc("largest sizes of buckets in MiB, e.g. 25 or 1,25; auto: what the cost model "
                    "says"),
           cl::value_desc("sizes"), cl::init("auto"), cl::sub(command), cl::cat(category)),
      sizeOptions(
          "size",
          cl::desc("what a dynamic size is taken to be where times and memory are predicted, e.g. "
                   "batch=8 (default: 128, or the nearest in its range); may be repeated"),
          cl::value_desc("symbol=value"), cl::sub(command), cl::cat(category)) {}

LogicalResult checkOptions(const ModelOptions &options, const CollectiveOptions &collectives,
                           ArrayRef<std::string> others) {
  std::vector<std::string> problems(others);
  std::string message;
  if (!cost::loadModel(collectives.topology, message))
    problems.push_back("--topology: " + StringRef(message).rtrim().str());
  message.clear();
  if (!collectives::BucketCaps::parse(collectives.caps.getValue(), message))
    problems.push_back("--bucket-caps: " + message);
  if (problems.empty())
    return success();
  // Else the plan's own errors come with these.
  std::vector<MeshAxis> axes;
  if (!options.mesh.empty())
    plan::parseMesh(options.mesh, "--mesh", axes, problems);
  for (const std::string &problem : problems)
    llvm::WithColor::error() << problem << "\n";
  return failure();
}

/// What a file is that is neither taken by an importer nor MLIR; empty where it may be MLIR.
static std::string describeOtherFile(StringRef bytes) {
  std::string message;
  if (readSafetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), message))
    return "a safetensors file, which has tensors but no program";
  if (bytes.starts_with("\x7f"
                        "ELF"))
    return "a compiled program or library";
  if (bytes.starts_with("PK\x03\x04"))
    return "a zip archive, but none of torch.export or TorchScript";
  if (bytes.starts_with("\x93NUMPY"))
    return "a numpy array";
  if (!bytes.starts_with("ML\xef"
                         "R") &&
      bytes.take_front(4096).contains('\0'))
    return "a binary file of unknown kind";
  return "";
}

OwningOpRef<ModuleOp> loadModel(StringRef path, ArrayRef<std::string> inputs,
                                MLIRContext *context) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &message);
  if (!file) {
    llvm::WithColor::error() << message << "\n";
    return nullptr;
  }
  const Importer *importer = findImporter(allImporters(), *file);
  std::string other = importer ? "" : describeOtherFile(file->getBuffer());
  if (!other.empty()) {
    llvm::WithColor::error() << "'" << path << "' is " << other
                             << "; a model is a torch.export archive (.pt2), a TorchScript archive "
                                "(.pt) or MLIR (.mlir, .mlirbc)\n";
    return nullptr;
  }
  if (!inputs.empty() && !(importer && importer->readsInputSpecs)) {
    llvm::WithColor::error() << "--input says what the inputs of a TorchScript model are; '" << path
                             << "' is " << (importer ? importer->name : "MLIR")
                             << ", which says it itself: leave --input out, or export the model "
                                "with other inputs\n";
    return nullptr;
  }
  if (importer)
    return importer->import(*file, {/*groups=*/"", inputs.vec()}, context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, context);
}

LogicalResult saveStage(ModuleOp module, const ModelOptions &options, StringRef name) {
  if (options.saveStages.empty())
    return success();
  llvm::SmallString<256> path(options.saveStages);
  if (std::error_code error = llvm::sys::fs::create_directories(path)) {
    llvm::WithColor::error() << "cannot make the folder '" << path << "': " << error.message()
                             << "\n";
    return failure();
  }
  llvm::sys::path::append(path, name + ".mlir");
  std::string message;
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(path, &message);
  if (!output) {
    llvm::WithColor::error() << message << "\n";
    return failure();
  }
  module->print(output->os(), OpPrintingFlags().enableDebugInfo());
  output->keep();
  return success();
}

LogicalResult runPipeline(ModuleOp module, StringRef pipeline) {
  PassManager passes(module->getContext());
  if (failed(parsePassPipeline(pipeline, passes)))
    return failure();
  return passes.run(module);
}

LogicalResult verifyProgram(ModuleOp module) {
  return runPipeline(module, "dist-verify-stage{stage=local or-scheduled}");
}

/// Whether the program is one rank's already, as `--save-stages` writes it: then it is compiled as
/// it is.
static bool isPartitioned(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, dist::kLayoutAttr))
        return true;
  return false;
}

static LogicalResult verifyPartitioned(ModuleOp module, const ModelOptions &options) {
  if (!options.mesh.empty() || !options.plan.empty() || !options.places.empty()) {
    llvm::WithColor::error() << "'" << options.model
                             << "' is partitioned already: --mesh, --plan and --place have nothing "
                                "to place\n";
    return failure();
  }
  return verifyProgram(module);
}

static LogicalResult optimizeCollectives(ModuleOp module, const ModelOptions &options,
                                         const CollectiveOptions &collectives) {
  OptimizeCollectivesOptions optimize;
  optimize.topology = collectives.topology.getValue();
  optimize.caps = collectives.caps.getValue();
  optimize.memoryLimit = collectives.memoryLimit;
  optimize.sizes = ArrayRef<std::string>(collectives.sizes);
  optimize.bestEffort = true;
  optimize.flat = collectives.flat;
  PassManager passes(module->getContext());
  buildOptimizeCollectivesPipeline(passes, optimize);
  if (failed(passes.run(module)))
    return failure();
  return saveStage(module, options, "4-scheduled");
}

/// A mesh without a word about what is sharded over it is more likely forgotten than meant.
static void warnIfNothingIsSharded(ModuleOp module) {
  bool replicated = false, other = false;
  auto look = [&](Type type) {
    if (dist::LayoutAttr layout = dist::getLayout(type))
      if (layout.getValue().mesh.numDevices() > 1)
        (layout.getValue().isFullyReplicated() ? replicated : other) = true;
  };
  module.walk([&](Operation *op) {
    llvm::for_each(op->getOperandTypes(), look);
    llvm::for_each(op->getResultTypes(), look);
    return other ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (replicated && !other)
    mlir::emitWarning(module.getLoc())
        << "nothing is sharded: every rank computes the whole model; say with --plan or --place "
           "what is, e.g. --place 'module:*.q_proj=colwise'";
}

LogicalResult partition(ModuleOp module, const ModelOptions &options,
                        const CollectiveOptions &collectives) {
  if (isPartitioned(module))
    return success(succeeded(verifyPartitioned(module, options)) &&
                   succeeded(runPipeline(module, "dist-verify-schedule")));
  PassManager passes(module->getContext());
  ApplyPlanOptions plan;
  plan.mesh = options.mesh;
  plan.plan = options.plan;
  plan.places.assign(options.places.begin(), options.places.end());
  buildPlacePipeline(passes, plan);
  if (failed(saveStage(module, options, "1-imported")) || failed(passes.run(module)) ||
      failed(saveStage(module, options, "2-placed")))
    return failure();
  warnIfNothingIsSharded(module);
  if (failed(runPipeline(module, "shardc-localize")))
    return failure();
  if (failed(saveStage(module, options, "3-local")))
    return failure();
  if (collectives.keep)
    return runPipeline(module, "dist-verify-schedule");
  return optimizeCollectives(module, options, collectives);
}

llvm::StringMap<Prediction> predictFunctions(ModuleOp module,
                                             const CollectiveOptions &collectives) {
  llvm::StringMap<Prediction> predictions;
  std::string message;
  std::unique_ptr<cost::CostModel> model = cost::loadModel(collectives.topology, message);
  if (!model) {
    module.emitWarning() << "nothing is predicted: " << StringRef(message).rtrim();
    return predictions;
  }
  FailureOr<SymbolValues> sizes = parseSymbolValues(module, collectives.sizes);
  if (failed(sizes))
    return predictions;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<Prediction> prediction = failure();
    {
      // The program itself may well be right.
      ScopedDiagnosticHandler first(module.getContext(), [&](Diagnostic &diagnostic) {
        if (message.empty())
          message = diagnostic.str();
      });
      prediction = predict(function, *model, *sizes);
    }
    if (succeeded(prediction))
      predictions[function.getName()] = std::move(*prediction);
    else
      function.emitWarning() << "nothing is predicted: " << message;
  }
  return predictions;
}

LogicalResult specialize(ModuleOp module, const ModelOptions &options,
                         const SpecializeOptions &specialize) {
  PassManager passes(module->getContext());
  passes.addPass(createSpecialize(specialize));
  passes.addPass(createVerifySchedule());
  if (failed(passes.run(module)) || failed(verifyProgram(module)))
    return failure();
  return saveStage(module, options, "5-specialized");
}

} // namespace shardc
