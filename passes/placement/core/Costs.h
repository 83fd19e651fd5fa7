// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a change of one axis costs before layouts are known: by the table that the planner of
// redistributions has its figures from too. Between layouts the planner is asked (ChangeCosts.h).
#ifndef SHARDC_PASSES_PLACEMENT_CORE_COSTS_H
#define SHARDC_PASSES_PLACEMENT_CORE_COSTS_H

#include "passes/cost/core/Transfer.h"
#include "passes/placement/core/Compose.h"
#include "passes/placement/core/Graph.h"

namespace shardc {

/// Bytes that a rank sends to take a tensor of `bytes` (whole over this axis, sharded by the
/// others) from one placement to another over an axis of n coordinates.
inline double transitionBytes(const AxisPlacement &from, const AxisPlacement &to, double bytes,
                              int64_t n) {
  return cost::transitionBytes({from.kind, from.dim, from.reduction},
                               {to.kind, to.dim, to.reduction}, from.samePlacement(to), bytes, n);
}

/// Bytes of a tensor that the axes other than `axis` leave on a device, where they share it out
/// evenly. `placementOf(a)` is what axis a does.
template <typename F>
double bytesBesideAxis(const PropagationGraph &graph, TensorId tensor, unsigned axis,
                       F &&placementOf) {
  double bytes = static_cast<double>(graph.tensors[tensor].elementSize);
  for (int64_t size : graph.shape(tensor))
    bytes *= static_cast<double>(size == kDynamic ? cost::kAssumedDynamicSize : size);
  for (unsigned a = 0; a < graph.numAxes(); ++a)
    if (a != axis && placementOf(a).isShard())
      bytes /= static_cast<double>(graph.mesh.axes[a].size);
  return bytes;
}

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_COSTS_H
