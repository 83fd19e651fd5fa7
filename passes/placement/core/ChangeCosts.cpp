// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/ChangeCosts.h"

#include "passes/placement/core/Costs.h"
#include "passes/redistribute/core/Planner.h"

#include <limits>

namespace shardc {

double ChangeCosts::bytes(TensorId tensor, LayoutId from, LayoutId to) {
  if (from == to)
    return 0;
  const auto &info = graph.tensors[tensor];
  auto [entry, isNew] = known.try_emplace({info.shape, info.elementSize, from, to});
  if (isNew)
    entry->second =
        cheapestBytes(layouts[from], layouts[to], graph.shape(tensor), info.elementSize);
  return entry->second;
}

double ChangeCosts::ofAxis(TensorId tensor, unsigned axis, std::span<const AxisPlacement> row,
                           const AxisPlacement &from, const AxisPlacement &to) {
  auto layoutWith = [&](const AxisPlacement &placement) {
    scratch.assign(row.begin(), row.end());
    scratch[axis] = placement;
    if (placement.isShard()) // where it is free to come and go
      scratch[axis].level = std::numeric_limits<uint8_t>::max();
    return layouts.compose(graph.tensors[tensor].shape, graph.shape(tensor), scratch);
  };
  std::optional<LayoutId> source = layoutWith(from), target = layoutWith(to);
  if (source && target)
    return bytes(tensor, *source, *target);
  double whole = bytesBesideAxis(graph, tensor, axis,
                                 [&](unsigned a) -> const AxisPlacement & { return row[a]; });
  return transitionBytes(from, to, whole, graph.mesh.axes[axis].size);
}

} // namespace shardc
