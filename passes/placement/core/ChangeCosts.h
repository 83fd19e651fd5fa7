// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes that a rank sends to bring a tensor from one layout into another: those of the planner's
// cheapest sequence, so that placement weighs what will be done. Models change few kinds of tensors
// in few ways, many times: each is planned once.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_CHANGECOSTS_H
#define SHARDC_PASSES_PLACEMENT_CORE_CHANGECOSTS_H

#include "passes/placement/core/Compose.h"
#include "passes/placement/core/Graph.h"

#include <array>
#include <limits>
#include <map>
#include <unordered_map>

namespace shardc {

/// What costs are of what is impossible.
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();

class ChangeCosts {
public:
  ChangeCosts(const PropagationGraph &graph, LayoutTable &layouts)
      : graph(graph), layouts(layouts) {}

  /// Both layouts are valid for the tensor's shape. Infinite where no sequence leads there.
  double bytes(TensorId tensor, LayoutId from, LayoutId to);

  /// Where one axis does another thing, inside of all others, which do what `row` says of them: by
  /// the one step over this axis alone. Before everything is placed that may be no layout: then it
  /// is the figure of semantics.md's table, for even shards.
  double ofAxis(TensorId tensor, unsigned axis, std::span<const AxisPlacement> row,
                const AxisPlacement &from, const AxisPlacement &to);

private:
  double computeOfAxis(TensorId tensor, unsigned axis, std::span<const AxisPlacement> row,
                       const AxisPlacement &from, const AxisPlacement &to);
  /// What `from` is where nothing is reduced that `to` has whole.
  LayoutId withoutReduction(LayoutId from, LayoutId to);
  /// `isDirect`: by the steps of the axes that change, one after the other.
  double lookUp(TensorId tensor, LayoutId from, LayoutId to, bool isDirect);

  const PropagationGraph &graph;
  LayoutTable &layouts;
  /// By shape, element size, both layouts, and whether steps are direct.
  std::map<std::array<int64_t, 5>, double> known;
  /// By shape, element size, axis, what it does, and what the others do.
  std::unordered_map<PlacementKey, double, PlacementKeyHash> knownOfAxis;
  PlacementKey key; ///< scratch
  std::vector<AxisPlacement> scratch;
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_CHANGECOSTS_H
