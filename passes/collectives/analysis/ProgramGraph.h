// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function of the local or scheduled stage as a plain graph, and a plan for that graph as the
// function again: all that the optimiser's core and the IR know of each other.

#ifndef SHARDC_PASSES_COLLECTIVES_ANALYSIS_PROGRAMGRAPH_H
#define SHARDC_PASSES_COLLECTIVES_ANALYSIS_PROGRAMGRAPH_H

#include "dialects/dist/Dist.h"
#include "passes/collectives/core/Graph.h"
#include "passes/collectives/core/Plan.h"
#include "passes/specialize/BindSymbols.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The graph of a function. A synchronous collective is two nodes, its start and its wait. A
/// dist.wait is one node for each collective that it waits for.
struct ProgramGraph {
  collectives::Graph graph;
  /// By node: the op that it is, or is part of.
  std::vector<mlir::Operation *> opOf;
  /// Of a node that is part of a dist.wait: which futures of the op it waits for.
  llvm::DenseMap<collectives::NodeId, llvm::SmallVector<unsigned, 1>> waitedFor;
};

/// Fills a graph from a function. Sizes and durations are those of the rank that has most to do,
/// with symbols of these values (others: typical ones); communicators are told apart by all their
/// rank lists. Fails, with errors at the ops concerned, where the function has control flow or is
/// no valid program.
mlir::FailureOr<ProgramGraph> buildProgramGraph(mlir::func::FuncOp function,
                                                const cost::CostModel &model,
                                                const SymbolValues &sizes = {});

/// Fails, with an error at the op, where the model has no price for a collective.
mlir::LogicalResult checkPrices(const ProgramGraph &program, const cost::CostModel &model);

enum class PlanForm {
  /// Buckets are synchronous collectives; what was synchronous stays so.
  Local,
  /// Every collective becomes a start and a wait, where the plan has them.
  Scheduled,
};

/// Puts the ops of the function in the order of a plan that checkPlan accepts and merges its
/// buckets. Returns the op that each collective node is now part of (null for other nodes).
std::vector<mlir::Operation *> applyPlan(mlir::func::FuncOp function, const ProgramGraph &program,
                                         const collectives::Plan &plan, PlanForm form);

} // namespace shardc

#endif // SHARDC_PASSES_COLLECTIVES_ANALYSIS_PROGRAMGRAPH_H
