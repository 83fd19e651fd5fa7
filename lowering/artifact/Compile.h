// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a lowered program to a shared object: what `shardc compile` does after its pipeline. No
// pass, because nothing of it is IR.

#ifndef SHARDC_LOWERING_ARTIFACT_COMPILE_H
#define SHARDC_LOWERING_ARTIFACT_COMPILE_H

#include "lowering/artifact/Description.h"

namespace shardc {

struct ArtifactOptions {
  /// The model's name, and the name and version of the tool: for messages.
  std::string name = "model";
  std::string tool = "shardc";
  /// The bytes of the model's constants (valid during the call). Unset: none.
  artifact::ConstantData constants;
};

/// Writes the shared object `path` of a module of the lowered stage, whose `exec.program` says what
/// it is, and whose target (lowering/target/Target.h) says what it is for. All errors are reported
/// as diagnostics of the context.
mlir::LogicalResult writeArtifact(mlir::ModuleOp lowered, const ArtifactOptions &options,
                                  llvm::StringRef path);

} // namespace shardc

#endif // SHARDC_LOWERING_ARTIFACT_COMPILE_H
