// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes moved when one axis changes what it does to a tensor: the table of semantics.md.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_TRANSITION_H
#define SHARDC_PASSES_PLACEMENT_CORE_TRANSITION_H

#include "passes/placement/core/Compose.h"
#include "passes/placement/core/Graph.h"

namespace shardc {

/// Bytes to take a tensor of `bytes` (whole over this axis, sharded by the others) from one
/// placement to another over an axis of n coordinates. Open counts as replicated. Extents that
/// differ on one dim cost a gather.
double transitionBytes(const AxisPlacement &from, const AxisPlacement &to, double bytes, int64_t n);

/// Bytes of a tensor that the axes other than `axis` leave on a device, where they share it out
/// evenly. A dim of unknown size counts as 128. `placementOf(a)` is what axis a does.
template <typename F>
double bytesBesideAxis(const PropagationGraph &graph, TensorId tensor, unsigned axis,
                       F &&placementOf) {
  double bytes = static_cast<double>(graph.tensors[tensor].elementSize);
  for (int64_t size : graph.shape(tensor))
    bytes *= size == kDynamic ? 128.0 : static_cast<double>(size);
  for (unsigned a = 0; a < graph.numAxes(); ++a)
    if (a != axis && placementOf(a).isShard())
      bytes /= static_cast<double>(graph.mesh.axes[a].size);
  return bytes;
}

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_TRANSITION_H
