// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `compile` and `explain` share: the options that name a model, a mesh and a plan, and the way
// from there to the scheduled stage.
#ifndef SHARDC_TOOLS_SHARDC_MODEL_H
#define SHARDC_TOOLS_SHARDC_MODEL_H

#include "passes/collectives/Predict.h"
#include "passes/specialize/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CommandLine.h"

namespace shardc {

/// Options that several subcommands have.
struct ModelOptions {
  ModelOptions(llvm::cl::SubCommand &command, llvm::cl::OptionCategory &category);

  llvm::cl::opt<std::string> model, mesh, plan, saveStages;
  llvm::cl::list<std::string> places, inputs;
};

/// How collectives are optimised.
struct CollectiveOptions {
  CollectiveOptions(llvm::cl::SubCommand &command, llvm::cl::OptionCategory &category);

  llvm::cl::opt<bool> keep;
  llvm::cl::opt<std::string> topology, caps;
  /// What symbols are taken to be, as the user says.
  llvm::cl::list<std::string> sizeOptions;
  /// The same as it is used; others have typical values.
  std::vector<std::string> sizes;
  /// Bytes; 0: as dist-schedule-collectives does without a limit. One that no order meets is
  /// reported when memory is planned.
  uint64_t memoryLimit = 0;
  /// The runtime takes the tensors of a bucket where they are; false: they are packed.
  bool flat = true;
};

/// Checks what the options say by themselves, before anything takes time: reports every mistake,
/// those of `others` (of options that only one command has) with them.
mlir::LogicalResult checkOptions(const ModelOptions &options, const CollectiveOptions &collectives,
                                 llvm::ArrayRef<std::string> others = {});

/// Reads the model: .mlir, .mlirbc, .pt2 or .pt, told by content. Null after its errors were
/// reported. `inputs` are as in `InputOptions`: only a TorchScript model takes them.
mlir::OwningOpRef<mlir::ModuleOp>
loadModel(llvm::StringRef path, llvm::ArrayRef<std::string> inputs, mlir::MLIRContext *context);

/// Runs a registered pipeline by its name.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, llvm::StringRef pipeline);

/// Checks one rank's program (`dist-verify-stage`): as scheduled where anything is waited for, else
/// as local.
mlir::LogicalResult verifyProgram(mlir::ModuleOp module);

/// imported -> placed -> local -> scheduled, with the plan and mesh of the options; saves each
/// stage where asked. With `collectives.keep` the program stays local. A module of the local or
/// scheduled stage is taken as it is. Either way all ranks have the same collectives in the same
/// order, which is checked.
mlir::LogicalResult partition(mlir::ModuleOp module, const ModelOptions &options,
                              const CollectiveOptions &collectives);

/// What to expect of a call, by function: before it is specialised.
llvm::StringMap<Prediction> predictFunctions(mlir::ModuleOp module,
                                             const CollectiveOptions &collectives);

/// scheduled (or local) -> one function for each kind of rank, all shapes static that depend on no
/// symbol, or on one that `specialize` binds.
mlir::LogicalResult specialize(mlir::ModuleOp module, const ModelOptions &options,
                               const SpecializeOptions &specialize = {});

/// Writes the module to DIR/NAME.mlir if the user asked for stages.
mlir::LogicalResult saveStage(mlir::ModuleOp module, const ModelOptions &options,
                              llvm::StringRef name);

} // namespace shardc

#endif // SHARDC_TOOLS_SHARDC_MODEL_H
