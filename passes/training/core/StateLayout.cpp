// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/training/core/StateLayout.h"

#include <algorithm>

namespace shardc::training {

namespace {

/// The fewest and the most elements of `dim` that a device has.
std::pair<int64_t, int64_t> extentsOf(const Layout &layout, std::span<const int64_t> shape,
                                      int64_t dim) {
  std::pair<int64_t, int64_t> range{shape[size_t(dim)], 0};
  for (int64_t rank : layout.mesh.ranks()) {
    int64_t extent = layout.localShapeOfRank(shape, rank)[size_t(dim)];
    range.first = std::min(range.first, extent);
    range.second = std::max(range.second, extent);
  }
  return range;
}

/// The dim that one more axis of `count` ranks shards; nothing where no dim has two elements.
std::optional<int64_t> dimFor(const Layout &layout, std::span<const int64_t> shape, int64_t count) {
  std::optional<int64_t> largest;
  int64_t most = 1;
  for (int64_t dim = 0; dim < int64_t(shape.size()); ++dim) {
    auto [least, greatest] = extentsOf(layout, shape, dim);
    if (least == greatest && greatest > 0 && greatest % count == 0)
      return dim;
    if (greatest > most) {
      most = greatest;
      largest = dim;
    }
  }
  return largest;
}

} // namespace

Layout updatedLayout(const Layout &parameter, std::span<const int64_t> shape) {
  Layout layout = parameter;
  for (unsigned axis = 0; axis < layout.placements.size(); ++axis) {
    const Placement &placement = parameter.placements[axis];
    if (placement.isShard() && shape[static_cast<size_t>(placement.dim)] <= 1)
      layout = layout.with(axis, Placement::replicate());
  }
  return layout.canonicalize(shape);
}

Layout shardedState(const Layout &parameter, std::span<const int64_t> shape,
                    std::span<const unsigned> axes) {
  Layout layout = parameter;
  for (unsigned axis : axes) {
    int64_t count = layout.mesh.axes[axis].size;
    if (!layout.placements[axis].isReplicate() || count == 1)
      continue;
    if (std::optional<int64_t> dim = dimFor(layout, shape, count))
      layout = layout.with(axis, Placement::shard(*dim));
  }
  return layout.canonicalize(shape);
}

Layout partialState(const Layout &parameter, std::span<const unsigned> axes) {
  Layout layout = parameter;
  for (unsigned axis : axes)
    if (layout.placements[axis].isReplicate() && layout.mesh.axes[axis].size > 1)
      layout = layout.with(axis, Placement::partial());
  return layout;
}

} // namespace shardc::training
