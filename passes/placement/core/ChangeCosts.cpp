// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/ChangeCosts.h"

#include "passes/placement/core/Costs.h"
#include "passes/redistribute/core/Planner.h"

#include <limits>

namespace shardc {

double ChangeCosts::bytes(TensorId tensor, LayoutId from, LayoutId to) {
  if (graph.hasOwnRows(tensor))
    from = withoutReduction(from, to);
  return lookUp(tensor, from, to, /*isDirect=*/false);
}

LayoutId ChangeCosts::withoutReduction(LayoutId from, LayoutId to) {
  Layout read = layouts[from];
  for (unsigned axis : layouts[from].partialAxes())
    if (layouts[to].placements[axis].isReplicate())
      read.placements[axis] = Placement::replicate();
  return layouts.intern(std::move(read));
}

double ChangeCosts::lookUp(TensorId tensor, LayoutId from, LayoutId to, bool isDirect) {
  if (from == to)
    return 0;
  const auto &info = graph.tensors[tensor];
  auto [entry, isNew] = known.try_emplace({info.shape, info.elementSize, from, to, isDirect});
  if (!isNew)
    return entry->second;
  double &bytes = entry->second;
  std::span<const int64_t> shape = graph.shape(tensor);
  if (!isDirect)
    return bytes = cheapestBytes(layouts[from], layouts[to], shape, info.elementSize);
  for (const RedistributeStep &step : planGreedily(layouts[from], layouts[to], shape).steps)
    bytes += bytesMoved(step, shape, info.elementSize);
  return bytes;
}

double ChangeCosts::ofAxis(TensorId tensor, unsigned axis, std::span<const AxisPlacement> row,
                           const AxisPlacement &from, const AxisPlacement &to) {
  if (from.isPartial() && to.kind == PlacementKind::Replicate && graph.hasOwnRows(tensor))
    return 0;
  const auto &info = graph.tensors[tensor];
  key.assign({info.shape, info.elementSize, axis});
  appendTo(key, from);
  appendTo(key, to);
  for (unsigned a = 0; a < row.size(); ++a)
    if (a != axis)
      appendTo(key, row[a]);
  auto [entry, isNew] = knownOfAxis.try_emplace(key, 0);
  if (isNew)
    entry->second = computeOfAxis(tensor, axis, row, from, to);
  return entry->second;
}

double ChangeCosts::computeOfAxis(TensorId tensor, unsigned axis,
                                  std::span<const AxisPlacement> row, const AxisPlacement &from,
                                  const AxisPlacement &to) {
  auto layoutWith = [&](const AxisPlacement &placement) {
    scratch.assign(row.begin(), row.end());
    scratch[axis] = placement;
    if (placement.isShard()) // where it is free to come and go
      scratch[axis].level = std::numeric_limits<uint8_t>::max();
    return layouts.compose(graph.tensors[tensor].shape, graph.shape(tensor), scratch);
  };
  std::optional<LayoutId> source = layoutWith(from), target = layoutWith(to);
  // The planner lets copies on other axes do a part of the work. Whether there are any is not
  // known.
  bool isDirect = !from.isShard() || !to.isShard() || from.dim != to.dim;
  if (source && target)
    return lookUp(tensor, *source, *target, isDirect);
  double whole = bytesBesideAxis(graph, tensor, axis,
                                 [&](unsigned a) -> const AxisPlacement & { return row[a]; });
  return transitionBytes(from, to, whole, graph.mesh.axes[axis].size);
}

} // namespace shardc
