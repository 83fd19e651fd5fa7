// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where an op comes from in the user's model, kept in its MLIR location: the name of its node in
// the exported graph, the path of its module and its line of source. The form is
//
//   loc(fused<"model.layers.0.mlp">["linear_3"("modeling_llama.py":160:0)])
//
// Passes that merge ops fuse locations; what is asked for here is then answered by the first that
// knows it.
#ifndef SHARDC_DIALECTS_INTERFACES_MODELLOCATION_H
#define SHARDC_DIALECTS_INTERFACES_MODELLOCATION_H

#include "mlir/IR/Location.h"

namespace shardc {

/// The location of one node. Empty strings and line 0 stand for what is not known.
mlir::Location makeModelLocation(mlir::MLIRContext *context, llvm::StringRef node,
                                 llvm::StringRef modulePath, llvm::StringRef file, unsigned line);

/// Path of the module whose forward made the op, e.g. `model.layers.0.mlp`; empty where unknown.
llvm::StringRef getModulePath(mlir::Location location);

/// Name of the node in the exported graph; empty where unknown.
llvm::StringRef getNodeName(mlir::Location location);

/// The first line of source; null where unknown.
mlir::FileLineColLoc getSourceLine(mlir::Location location);

/// Of an op of the backward of the op at `forward`: at the same place in the model, with
/// "backward of NODE" as the name of its node.
mlir::Location makeBackwardLocation(mlir::Location forward);

/// Whether the op belongs to a backward.
bool isBackward(mlir::Location location);

/// For people: `model.layers.0.mlp (modeling_llama.py:160)`; the node's name where no module is
/// known; never empty.
std::string describePlace(mlir::Location location);

} // namespace shardc

#endif // SHARDC_DIALECTS_INTERFACES_MODELLOCATION_H
