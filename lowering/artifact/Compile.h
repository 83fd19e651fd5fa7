// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a program of the local or scheduled stage to a shared object: what `shardc compile` does
// after partitioning.

#ifndef SHARDC_LOWERING_ARTIFACT_COMPILE_H
#define SHARDC_LOWERING_ARTIFACT_COMPILE_H

#include "lowering/artifact/Description.h"
#include "lowering/memory/Passes.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace shardc {

struct CompileOptions {
  /// A registered target, e.g. "cpu" or "cpu:NAME" (lowering/target/Backend.h).
  std::string target = "cpu";
  /// The model's name, and the name and version of the tool: for messages.
  std::string name = "model";
  std::string tool = "shardc";
  /// Which buffers and constants are part of the artifact, with their bytes (valid during the
  /// call). Unset: none.
  artifact::ConstantData constants;
  /// The most bytes that one rank may need, parameters included; 0: no limit. A program that needs
  /// more is an error that says what takes them.
  uint64_t memoryLimit = 0;
  /// For which sizes that limit holds: a value of every symbol ("batch=8").
  std::vector<std::string> memorySizes;
  /// What to expect of a call of an entry, by name; unset, or nothing: no prediction.
  std::function<std::optional<Prediction>(llvm::StringRef entry)> predicted;
  /// How collectives of several tensors are handed to the communicator: `exec-pack-buckets`.
  memory::BucketForm bucketForm = memory::BucketForm::Auto;
  /// Called with the module before lowering begins and after each step that has a name, for
  /// --save-stages.
  std::function<void(mlir::ModuleOp, llvm::StringRef stage)> onStage;
};

/// Lowers `module` (which is changed) and writes the shared object `path`. It must have been
/// specialised
/// (`dist-specialize`): extents are static, or depend on symbols alone. Every entry is a function
/// of the module; kernels and all else is made here. All errors are reported as diagnostics of the
/// context.
mlir::LogicalResult compileToSharedObject(mlir::ModuleOp module, const CompileOptions &options,
                                          llvm::StringRef path);

/// The passes that it runs: from the local or scheduled stage to the planned one,
/// `--shardc-plan-memory=target=SPEC`, and from there to LLVM's dialect, `--shardc-lower-planned`.
/// `--shardc-lower=target=SPEC` is both.
void buildPlanMemoryPipeline(mlir::OpPassManager &pm, llvm::StringRef target,
                             memory::BucketForm bucketForm = memory::BucketForm::Auto,
                             llvm::ArrayRef<std::string> memorySizes = {});
void buildLowerPlannedPipeline(mlir::OpPassManager &pm);
void registerLowerPipeline();

} // namespace shardc

#endif // SHARDC_LOWERING_ARTIFACT_COMPILE_H
