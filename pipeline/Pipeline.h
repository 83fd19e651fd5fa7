// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The one way from an imported model to a lowered program. Every tool goes it, from one stage to
// another, with the same passes and the same options.

#ifndef SHARDC_PIPELINE_PIPELINE_H
#define SHARDC_PIPELINE_PIPELINE_H

#include "passes/verify/Stage.h"
#include "pipeline/Options.h"

#include "mlir/Pass/PassInstrumentation.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace shardc {

/// Adds the passes that take a module of the stage `from` to the stage `to`, which is the same or a
/// later one. Every stage on the way is verified, the first and the last too. With
/// `keepCollectives` there is no scheduled stage: a local program goes on as it is.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options, Stage from, Stage to);

/// Makes the whole of it known as `--shardc-compile`, with the options `from` and `to`, and the way
/// from each stage to the next under a name of its own (`--shardc-place`), with the options that it
/// takes.
void registerPipelines();

/// The stage that a module is in, as importers and these pipelines leave it.
Stage stageOf(mlir::ModuleOp module);

/// Writes the module to a file of a folder (`2-placed.mlir`) each time that a stage is reached:
/// before it is verified, so that what is refused can be looked at. `error` gets what goes wrong
/// with files; both must outlive the pass manager.
std::unique_ptr<mlir::PassInstrumentation> createSaveStages(llvm::StringRef folder,
                                                            std::string &error);

} // namespace shardc

#endif // SHARDC_PIPELINE_PIPELINE_H
