// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of the imported stage, or what is left to place of a half-placed one, as the IR-free
// core of placement sees it.
#ifndef SHARDC_PASSES_PLACEMENT_FUNCTIONGRAPH_H
#define SHARDC_PASSES_PLACEMENT_FUNCTIONGRAPH_H

#include "passes/placement/core/Propagate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

struct FunctionGraph {
  FunctionGraph(mlir::func::FuncOp function, Mesh mesh)
      : function(function), graph(std::move(mesh)) {}

  mlir::func::FuncOp function;
  PropagationGraph graph;
  llvm::DenseMap<mlir::Value, TensorId> tensorOf;
  /// By OpId; null for the constraint on an output, which is no op of the IR.
  std::vector<mlir::Operation *> operations;
  /// By TensorId: the value, or the value before the constraint for an output.
  std::vector<mlir::Value> values;
  /// By OpId: which operands of the MLIR op are its tensors, in order.
  std::vector<llvm::SmallVector<unsigned>> operandNumbers;
  /// By result number of the function: the constraint's result.
  std::vector<TensorId> outputs;
  /// Values made from constants and buffers alone (positions, masks): the same on all ranks without
  /// communication, so they stay replicated, and a rank takes its part for free. The graph has
  /// those that other ops use, as replicated inputs.
  llvm::DenseSet<mlir::Value> invariant;
  /// The constants and buffers that invariant values are made from: whole on every rank as well.
  llvm::DenseSet<mlir::Value> wholeSources;
};

/// Ops that are placed are no part of the graph, but for redistributions of what other ops use.
/// Fails, after reporting all of them, where an op has no sharding rule or a value is neither a
/// ranked tensor nor an index. An argument that has a `dist.sharding` with a shard is no source of
/// invariant values, whatever it is.
mlir::FailureOr<FunctionGraph> buildFunctionGraph(mlir::func::FuncOp function, const Mesh &mesh);

/// The mesh on the module around `function`; an error is reported where there is none.
mlir::FailureOr<Mesh> requireMesh(mlir::func::FuncOp function);

/// Emits remarks and errors of the core where they belong in the model. Fails if there was an
/// error.
mlir::LogicalResult report(const FunctionGraph &function, llvm::ArrayRef<Remark> remarks,
                           llvm::ArrayRef<Refusal> errors);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_FUNCTIONGRAPH_H
