// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the commands of shardc share: the options that name a model, and the way through the
// pipeline.
#ifndef SHARDC_TOOLS_SHARDC_MODEL_H
#define SHARDC_TOOLS_SHARDC_MODEL_H

#include "pipeline/Pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/CommandLine.h"

namespace shardc {

/// Options that several subcommands have.
struct ModelOptions {
  ModelOptions(llvm::cl::SubCommand &command, llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> model, saveStages;
  llvm::cl::list<std::string> inputs, ops, fixedBuffers;
};

/// Checks what the options say by themselves, before anything takes time: reports every mistake,
/// those of `others` (of options that only one command has) with them. Makes the folder for stages.
mlir::LogicalResult checkOptions(const ModelOptions &model, const PipelineOptions &options,
                                 llvm::ArrayRef<std::string> others = {});

/// Reads the model: .mlir, .mlirbc, .pt2 or .pt, told by content. Null after its errors were
/// reported. `inputs` are as in `InputOptions`: only a TorchScript model takes them.
/// `opFiles` and the plan register operators. `fixedBuffers` are as in `InputOptions`.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(llvm::StringRef path,
                                            llvm::ArrayRef<std::string> inputs,
                                            llvm::ArrayRef<std::string> opFiles,
                                            llvm::StringRef plan, mlir::MLIRContext *context,
                                            llvm::ArrayRef<std::string> fixedBuffers = {});
/// Likewise what a command's options say, among them the plan, which may register operators.
mlir::OwningOpRef<mlir::ModuleOp>
loadModel(const ModelOptions &model, const PipelineOptions &options, mlir::MLIRContext *context);

/// The stage that the module is in. One of the local stage or a later one keeps its collectives.
/// Fails, with an error, where the options ask for what was done before.
mlir::FailureOr<Stage> stageToStartFrom(mlir::ModuleOp module, const ModelOptions &model,
                                        PipelineOptions &options);

/// Runs the pipeline from one stage to another, as MLIR's own options say (printing, timing, crash
/// reproducers), and saves each stage to a folder unless its name is empty.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options, Stage from,
                                Stage to, llvm::StringRef saveStages = "");

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_MODEL_H
