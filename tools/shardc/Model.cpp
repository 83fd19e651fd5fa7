// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/shardc/Model.h"

#include "importers/Importer.h"
#include "importers/plan/Plan.h"
#include "support/archive/Safetensors.h"
#include "tools/CustomOps.h"
#include "tools/Registration.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace shardc {

ModelOptions::ModelOptions(cl::SubCommand &command, cl::OptionCategory &category)
    : model(cl::Positional, cl::Required, cl::desc("MODEL"), cl::sub(command), cl::cat(category)),
      saveStages("save-stages", cl::desc("write the program at every stage to this folder"),
                 cl::value_desc("folder"), cl::sub(command), cl::cat(category)),
      inputs("input",
             cl::desc("shape and element type of an input of a TorchScript model, by name or "
                      "position, e.g. x=8x64xf32; traced models have them"),
             cl::value_desc("spec"), cl::sub(command), cl::cat(category)),
      ops("ops",
          cl::desc("file whose section 'ops' registers operators, as a plan may "
                   "(docs/custom-ops.md); may be repeated"),
          cl::value_desc("file"), cl::sub(command), cl::cat(category)),
      fixedBuffers("fixed-buffer",
                   cl::desc("buffers whose values are those of the model file in all runs, "
                            "whatever weights these are given, e.g. '*.mask'; may be repeated"),
                   cl::value_desc("pattern"), cl::sub(command), cl::cat(category)) {}

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
                                ArrayRef<std::string> opFiles, StringRef plan, MLIRContext *context,
                                ArrayRef<std::string> fixedBuffers) {
  std::optional<std::vector<CustomOp>> ops = loadCustomOps(opFiles, plan);
  if (!ops)
    return nullptr;
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
    return importer->import(
        *file, {/*groups=*/"", inputs.vec(), std::move(*ops), fixedBuffers.vec()}, context);
  if (!fixedBuffers.empty()) {
    llvm::WithColor::error() << "--fixed-buffer needs the values that a model file has; '" << path
                             << "' is MLIR\n";
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, context);
}

OwningOpRef<ModuleOp> loadModel(const ModelOptions &model, const PipelineOptions &options,
                                MLIRContext *context) {
  std::vector<std::string> files(model.ops.begin(), model.ops.end());
  // A plan that cannot be read is an error of the pass that reads it.
  std::string plan = options.plan;
  if (!llvm::sys::fs::is_regular_file(plan))
    plan.clear();
  std::vector<std::string> fixed(model.fixedBuffers.begin(), model.fixedBuffers.end());
  return loadModel(model.model, model.inputs, files, plan, context, fixed);
}

/// What the options say to do that was done before; empty where they say nothing of the kind.
static std::string whatIsDone(const ModelOptions &model, const PipelineOptions &options,
                              Stage from) {
  if (from > Stage::Placed && !options.gradients.empty())
    return "'" + model.model +
           "' is partitioned already: --gradients differentiates models that are not";
  if (from >= Stage::Local)
    for (auto [asked, move] :
         {std::pair(options.chunkCollectives != "off", "chunk-collectives"),
          std::pair(options.splitNodes != "off", "split-nodes"),
          std::pair(options.ringAttention == "all" || options.ringAttention == "balanced",
                    "ring-attention"),
          std::pair(options.splitWindows == "all", "split-windows"),
          std::pair(bool(options.moveProducts), "move-products")})
      if (asked)
        return "'" + model.model +
               "' is partitioned already, and its collectives are compiled as they are: --" + move +
               " is for models that are not (shard-opt --dist-" + move +
               " does the same to such a program)";
  bool places = !options.mesh.empty() || !options.otherMeshes.empty() || !options.plan.empty() ||
                !options.places.empty();
  if (from == Stage::Imported || !places)
    return "";
  return "'" + model.model + "' is " + (from == Stage::Placed ? "placed" : "partitioned") +
         " already: --mesh, --plan and --place have nothing to place";
}

FailureOr<Stage> stageToStartFrom(ModuleOp module, const ModelOptions &model,
                                  PipelineOptions &options) {
  Stage from = stageOf(module);
  if (std::string message = whatIsDone(model, options, from); !message.empty()) {
    llvm::WithColor::error() << message << "\n";
    return failure();
  }
  // What is written for one rank, by hand or by --save-stages, is compiled as it is.
  if (from >= Stage::Local)
    options.keepCollectives = true;
  return from;
}

LogicalResult checkOptions(const ModelOptions &model, const PipelineOptions &options,
                           ArrayRef<std::string> others) {
  std::vector<std::string> problems(others);
  llvm::append_range(problems, checkOptions(options));
  if (!model.saveStages.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(model.saveStages))
      problems.push_back("cannot make the folder '" + model.saveStages + "': " + error.message());
  if (problems.empty())
    return success();
  // Else the plan's own errors come with these.
  plan::Plan read;
  if (!options.mesh.empty())
    plan::parseMesh(options.mesh, "--mesh", read.mesh, problems);
  for (const std::string &other : textsOf(options.otherMeshes))
    plan::parseNamedMesh(other, "--other-mesh " + other, read, problems);
  for (const std::string &problem : problems)
    llvm::WithColor::error() << problem << "\n";
  return failure();
}

LogicalResult runPipeline(ModuleOp module, const PipelineOptions &options, Stage from, Stage to,
                          StringRef saveStages) {
  PassManager passes(module->getContext(), ModuleOp::getOperationName());
  std::string error;
  if (!saveStages.empty())
    passes.addInstrumentation(createSaveStages(saveStages, error));
  if (failed(applyPassManagerCLOptions(passes)))
    return failure();
  applyDefaultTimingPassManagerCLOptions(passes);
  buildPipeline(passes, options, from, to);
  LogicalResult result = passes.run(module);
  if (error.empty())
    return result;
  llvm::WithColor::error() << "--save-stages: " << error << "\n";
  return failure();
}

} // namespace shardc
