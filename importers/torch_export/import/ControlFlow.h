// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators that run the graphs among their arguments.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CONTROLFLOW_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CONTROLFLOW_H

#include "importers/torch_export/import/Builders.h"
#include "importers/torch_export/import/Environment.h"

namespace shardc::torch_export {

/// A graph that a node runs once, as it is.
struct NestedCall {
  const Graph *graph;
  llvm::SmallVector<const Argument *> inputs;
  /// Inside `torch.no_grad()`; nothing: where the node is inside that.
  std::optional<bool> noGrad = {};
};

/// Whether this is an operator whose graph stands for the node: `wrap_with_set_grad_enabled`,
/// `wrap_with_autocast` and `invoke_subgraph`.
bool isNestedCall(llvm::StringRef target);
/// Whether `torch.autocast` is still to choose the types of the ops in its graph.
bool isStillToCast(const Node &node);
/// Fails, with a diagnostic, where the arguments do not fit the graph, and where it is still to be
/// cast.
mlir::FailureOr<NestedCall> nestedCall(const Node &node, mlir::Location loc);

/// The names of a node's results. A list of them may come as one.
llvm::SmallVector<Argument> outputNames(const Node &node);

/// Whether this is an operator that runs its graphs on parts of tensors or under a condition:
/// `cond`, `map_impl` and `scan`.
bool isControlFlow(llvm::StringRef target);
/// Runs a graph on these tensors and gives its results.
using RunGraph = llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(
    const Graph &, llvm::ArrayRef<mlir::Value>)>;
/// `map_impl` and `scan` run their graph once for each slice of a known number of them. `cond` runs
/// both of its graphs and chooses their results: what is not chosen takes no part in gradients, and
/// gets zeros as its integers, which may be positions that are out of range there.
mlir::FailureOr<Results> importControlFlow(mlir::OpBuilder &builder, Environment &environment,
                                           const Node &node, mlir::Location loc, RunGraph run);
/// The names of a graph that a node runs on these tensors.
Frame nestedFrame(Environment &environment, const Graph &graph, llvm::ArrayRef<mlir::Value> inputs);
/// The results of the graph of the innermost frame, which `node` runs. Fails, with a diagnostic,
/// where one is no tensor, and where the graph has updated an operand.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> nestedResults(Environment &environment,
                                                              const Node &node, mlir::Location loc);

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_CONTROLFLOW_H
