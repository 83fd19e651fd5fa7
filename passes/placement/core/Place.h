// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses a layout for every tensor and for every operand of every op.
//
// Ops are placed in order of execution. For each mesh axis an op takes one strategy: it shards one
// of its factors over the axis, or computes the same on all its coordinates, or is linear in
// partial operands and passes them through. Taken is the strategy with the fewest bytes moved: by
// its operands, from the layouts they have (or are redistributed to already for another op), and by
// its results, to the layouts that propagation found for them, or out of a partial one
// (PartialDelay.h), as the planner of redistributions counts them (ChangeCosts.h). Equal bytes:
// sharded before replicated; ops that only move data pass partial values on, others reduce them
// first.
//
// Wherever an operand's layout is not that of its tensor, a redistribution is needed; ops that need
// a tensor in one layout share it.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_PLACE_H
#define SHARDC_PASSES_PLACEMENT_CORE_PLACE_H

#include "passes/placement/core/Propagate.h"

namespace shardc {

struct Redistribution {
  TensorId tensor;
  LayoutId to;    ///< from is the tensor's layout
  OpId firstUser; ///< the first op that needs it, in order of execution
};

struct PlacedGraph {
  std::vector<Layout> layouts;          ///< distinct, canonical
  std::vector<LayoutId> tensorLayouts;  ///< by tensor: as an input comes in, or an op makes it
  std::vector<LayoutId> operandLayouts; ///< parallel to PropagationGraph::operandTensors
  std::vector<Redistribution> redistributions; ///< each (tensor, to) once, by first user
  std::vector<Remark> remarks;
  double exchangedBytes = 0;   ///< that ranks exchange inside of ops
  unsigned delayRounds = 0;    ///< of PartialDelay
  std::vector<Refusal> errors; ///< not empty: nothing else is set

  const Layout &tensorLayout(TensorId tensor) const { return layouts[tensorLayouts[tensor]]; }
  const Layout &operandLayout(const PropagationGraph &graph, OpId op, unsigned operand) const {
    return layouts[operandLayouts[graph.ops[op].firstOperand + operand]];
  }
};

/// `propagation` is that of the same graph; its remarks and errors are passed on. Where its states
/// were changed since (by hand, in the text of a program), a result whose state is annotated gets
/// exactly that or is refused; any other shard is a wish, and a remark says where it is not
/// followed.
PlacedGraph place(const PropagationGraph &graph, Propagation &propagation);

/// Propagates and places.
PlacedGraph placeGraph(const PropagationGraph &graph);

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_PLACE_H
