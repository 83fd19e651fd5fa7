// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/placement/core/Compose.h"

#include <algorithm>
#include <numeric>

namespace shardc {

namespace {
/// The axes that split one dim, nested in some order.
class DimNest {
public:
  DimNest(const Mesh &mesh, int64_t size, std::span<const AxisPlacement> axes)
      : mesh(mesh), size(size), axes(axes) {}

  /// Placements for `order` (outer to inner); nothing where an axis cannot be nested so.
  ///
  /// An axis on an outer factor leaves fewer blocks to an axis on an inner factor, and an axis on
  /// an inner factor a smaller granule to one on an outer factor: exact where what it leaves is the
  /// same on all its coordinates.
  std::optional<std::vector<Placement>> nest(const std::vector<unsigned> &order) const {
    std::vector<Placement> result;
    for (size_t i = 0; i < order.size(); ++i) {
      const AxisPlacement &axis = axes[order[i]];
      if (axis.storage) {
        result.push_back(Placement::shard(axis.dim));
        continue;
      }
      int64_t blocks = axis.split.blocks, granule = axis.split.granule;
      std::vector<SplitBlock> unequal;
      if (axis.split.isUnequal())
        unequal = axis.split.unequal();
      for (size_t o = 0; o < i; ++o) {
        const AxisPlacement &outside = axes[order[o]];
        if (axis.split.isUnequal() || outside.split.isUnequal()) {
          // Of blocks of the same sizes an even part is left.
          if (!haveSameBlocks(axis.split, outside.split) || !isEven(order[o]))
            return std::nullopt;
          for (SplitBlock &block : unequal)
            block.size /= mesh.axes[order[o]].size;
          continue;
        }
        if (outside.split.blocks == axis.split.blocks)
          continue;
        int64_t count = mesh.axes[order[o]].size;
        if (!isEven(order[o]))
          return std::nullopt;
        if (outside.split.blocks < axis.split.blocks) {
          // A piece of the outer axis must be a whole number of blocks.
          int64_t inside = axis.split.blocks / outside.split.blocks;
          if (axis.split.blocks % outside.split.blocks != 0 || inside % count != 0)
            return std::nullopt;
          blocks /= count;
          continue;
        }
        // A granule must be a whole number of the outer axis's blocks. Explicit sizes of a factor
        // do not say how much of them an inner factor leaves.
        if (axis.split.sizes || size == kDynamic ||
            axis.split.granule % (size / outside.split.blocks) != 0)
          return std::nullopt;
        granule /= count;
      }
      Placement placement = Placement::shard(axis.dim, blocks);
      if (axis.split.isUnequal())
        placement = Placement::shardBlocks(axis.dim, unequal);
      else if (axis.split.sizes)
        placement.sizes = *axis.split.sizes;
      else
        placement.granule = granule;
      result.push_back(std::move(placement));
    }
    return result;
  }

private:
  static bool haveSameBlocks(const Split &a, const Split &b) {
    return a.isUnequal() && b.isUnequal() &&
           std::ranges::equal(
               a.unequal(), b.unequal(),
               [](const SplitBlock &x, const SplitBlock &y) { return x.size == y.size; });
  }

  /// Whether all coordinates of an axis get the same extent of the dim, and of each block.
  bool isEven(unsigned axis) const {
    const Split &split = axes[axis].split;
    int64_t count = mesh.axes[axis].size;
    if (split.isUnequal())
      return std::ranges::all_of(split.unequal(), [&](const SplitBlock &block) {
        return block.size % (block.granule * count) == 0;
      });
    if (split.sizes)
      return std::all_of(split.sizes->begin(), split.sizes->end(),
                         [&](int64_t s) { return s == split.sizes->front(); });
    return size != kDynamic && size % (split.blocks * split.granule * count) == 0;
  }

  const Mesh &mesh;
  int64_t size;
  std::span<const AxisPlacement> axes;
};
} // namespace

std::optional<Layout> compose(const Mesh &mesh, std::span<const int64_t> shape,
                              std::span<const AxisPlacement> axes) {
  Layout layout(mesh);
  std::vector<unsigned> shards;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].isPartial())
      layout.placements[axis] = Placement::partial(axes[axis].reduction);
    if (axes[axis].isShard())
      shards.push_back(axis);
  }
  // Dim by dim, outer factors first.
  std::sort(shards.begin(), shards.end(), [&](unsigned a, unsigned b) {
    auto key = [&](unsigned axis) {
      const AxisPlacement &p = axes[axis];
      return std::tuple(p.dim, p.storage, p.split.blocks, p.level, axis);
    };
    return key(a) < key(b);
  });
  std::vector<unsigned> order;
  for (size_t begin = 0, end = 0; begin < shards.size(); begin = end) {
    while (end < shards.size() && axes[shards[end]].dim == axes[shards[begin]].dim)
      ++end;
    int64_t dim = axes[shards[begin]].dim;
    if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
      return std::nullopt;
    std::vector<unsigned> ofDim(shards.begin() + begin, shards.begin() + end);
    DimNest nest(mesh, shape[dim], axes);
    std::optional<std::vector<Placement>> placements = nest.nest(ofDim);
    if (!placements) {
      // An uneven outer factor: inner factors outside it may still do.
      std::sort(ofDim.begin(), ofDim.end(), [&](unsigned a, unsigned b) {
        auto key = [&](unsigned axis) {
          const AxisPlacement &p = axes[axis];
          return std::tuple(p.storage, -p.split.blocks, p.level, axis);
        };
        return key(a) < key(b);
      });
      placements = nest.nest(ofDim);
    }
    if (!placements)
      return std::nullopt;
    for (size_t i = 0; i < ofDim.size(); ++i) {
      layout.placements[ofDim[i]] = std::move((*placements)[i]);
      order.push_back(ofDim[i]);
    }
  }
  for (unsigned axis = 0; axis < axes.size(); ++axis)
    if (!axes[axis].isShard())
      order.push_back(axis);
  layout.order = std::move(order);
  if (!layout.validate(shape).empty())
    return std::nullopt;
  return layout.canonicalize(shape);
}

/// Blocks whose sizes are given, but not what they are made of.
static bool isWithoutUnits(const Placement &placement) {
  return placement.isUnequal() &&
         std::ranges::all_of(unequalBlocks(placement.sizes),
                             [](const SplitBlock &block) { return block.granule == 1; });
}

std::vector<AxisPlacement> decompose(const Layout &layout, SizesPool &pool) {
  std::vector<AxisPlacement> result(layout.placements.size());
  for (uint8_t level = 0; level < layout.order.size(); ++level) {
    unsigned axis = layout.order[level];
    const Placement &p = layout.placements[axis];
    if (p.isReplicate())
      result[axis] = AxisPlacement::replicate();
    if (p.isPartial())
      result[axis] = AxisPlacement::partial(p.reduction);
    if (!p.isShard())
      continue;
    Split split{p.blocks, p.granule, p.sizes.empty() ? nullptr : pool.get(p.sizes), false};
    split.fixed = !p.isPlainChunk() && !isWithoutUnits(p);
    // Inside an axis with fewer blocks, the layout counts the blocks that are left; the whole dim
    // has as many more as that axis has coordinates.
    for (unsigned outside : layout.axesOfDim(p.dim)) {
      if (outside == axis)
        break;
      if (!result[outside].split.isUnequal() && result[outside].split.blocks < split.blocks)
        split.blocks *= layout.mesh.axes[outside].size;
      if (split.isUnequal() && result[outside].split.isUnequal()) {
        std::vector<SplitBlock> blocks = split.unequal();
        for (SplitBlock &block : blocks)
          block.size *= layout.mesh.axes[outside].size;
        split = Split::intoBlocks(blocks, split.fixed, pool);
      }
    }
    result[axis] = AxisPlacement::shard(static_cast<int>(p.dim), split, level);
  }
  return result;
}

std::vector<AxisPlacement> decomposeFinal(const Layout &layout, SizesPool &pool) {
  std::vector<AxisPlacement> result = decompose(layout, pool);
  for (unsigned axis = 0; axis < result.size(); ++axis) {
    AxisPlacement &p = result[axis];
    if (p.isShard() && !p.split.isUnequal() && p.split.sizes &&
        layout.axesOfDim(p.dim).front() != axis)
      p.split = Split();
  }
  return result;
}

void appendTo(PlacementKey &key, const AxisPlacement &axis) {
  if (!axis.isShard()) {
    bool open = axis.kind == PlacementKind::Open;
    int64_t reduction = axis.isPartial() ? static_cast<int64_t>(axis.reduction) : 0;
    key.push_back(static_cast<int64_t>(open ? PlacementKind::Replicate : axis.kind) | reduction
                                                                                          << 8);
    return;
  }
  key.insert(key.end(),
             {static_cast<int64_t>(axis.kind) | int64_t(axis.level) << 8 |
                  int64_t(axis.storage) << 16 | int64_t(axis.dim) << 32,
              axis.split.blocks, axis.split.granule, reinterpret_cast<int64_t>(axis.split.sizes)});
}

std::optional<LayoutId> LayoutTable::compose(unsigned shapeId, std::span<const int64_t> shape,
                                             std::span<const AxisPlacement> axes) {
  key.clear();
  key.push_back(shapeId);
  for (const AxisPlacement &axis : axes)
    appendTo(key, axis);
  auto [it, added] = composed.try_emplace(key);
  if (added)
    if (std::optional<Layout> layout = shardc::compose(mesh, shape, axes))
      it->second = intern(std::move(*layout));
  return it->second;
}

LayoutId LayoutTable::intern(Layout layout) {
  size_t hash = layout.hash();
  auto [begin, end] = byHash.equal_range(hash);
  for (auto it = begin; it != end; ++it)
    if (layouts[it->second] == layout)
      return it->second;
  LayoutId id = static_cast<LayoutId>(layouts.size());
  layouts.push_back(std::move(layout));
  byHash.emplace(hash, id);
  return id;
}

} // namespace shardc
