// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From what each mesh axis does to a tensor, taken by itself, to a layout.
#ifndef SHARDC_PASSES_PLACEMENT_CORE_COMPOSE_H
#define SHARDC_PASSES_PLACEMENT_CORE_COMPOSE_H

#include "passes/placement/core/Split.h"

#include <unordered_map>

namespace shardc {

/// What one mesh axis does to one tensor, apart from the other axes.
struct AxisPlacement {
  PlacementKind kind = PlacementKind::Open;
  Reduction reduction = Reduction::Sum; ///< Partial
  uint8_t level = 0; ///< Shard: among axes that split one factor, lower levels are outside
  /// Shard: only how the tensor is stored. The axis chunks what all other axes leave, innermost,
  /// whatever that is.
  bool storage = false;
  int dim = 0; ///< Shard
  Split split; ///< Shard

  static AxisPlacement replicate() {
    AxisPlacement p;
    p.kind = PlacementKind::Replicate;
    return p;
  }
  static AxisPlacement partial(Reduction reduction) {
    AxisPlacement p;
    p.kind = PlacementKind::Partial;
    p.reduction = reduction;
    return p;
  }
  static AxisPlacement shard(int dim, Split split, uint8_t level) {
    AxisPlacement p;
    p.kind = PlacementKind::Shard;
    p.dim = dim;
    p.split = split;
    p.level = level;
    return p;
  }
  bool isShard() const { return kind == PlacementKind::Shard; }
  bool isPartial() const { return kind == PlacementKind::Partial; }
  /// Whether both do the same to the tensor (levels and whether extents are fixed set aside).
  bool samePlacement(const AxisPlacement &other) const {
    if (kind != other.kind)
      return false;
    if (isShard())
      return dim == other.dim && storage == other.storage && split.sameExtents(other.split);
    return !isPartial() || reduction == other.reduction;
  }
};

/// The canonical layout in which each axis does what `axes` says; open axes are replicated. Axes
/// that split one dim nest: those of outer factors outside. Nothing where no layout says this: an
/// axis inside another whose shards are uneven.
std::optional<Layout> compose(const Mesh &mesh, std::span<const int64_t> shape,
                              std::span<const AxisPlacement> axes);

/// The reverse, for an annotation: what each axis of a layout does by itself. Extents are fixed
/// where the placement gives sizes, equal blocks or a granule. (A layout that gives blocks inside
/// an uneven axis has no such form: composing what is returned then gives another layout, or none.)
std::vector<AxisPlacement> decompose(const Layout &layout, SizesPool &pool);

/// The same of a layout that a tensor has. Explicit sizes inside another axis are those of the
/// piece that it leaves, and nothing can be said of the whole dim: what they split is left open.
std::vector<AxisPlacement> decomposeFinal(const Layout &layout, SizesPool &pool);

using LayoutId = unsigned;

/// What axes do, as numbers to look up by. Axes that are open count as replicated.
using PlacementKey = std::vector<int64_t>;
void appendTo(PlacementKey &key, const AxisPlacement &axis);
struct PlacementKeyHash {
  size_t operator()(const PlacementKey &key) const {
    size_t seed = key.size();
    for (int64_t value : key)
      seed = hashCombine(seed, static_cast<size_t>(value));
    return seed;
  }
};

/// Distinct layouts of one mesh by number; composing the same thing twice is a look-up.
class LayoutTable {
public:
  explicit LayoutTable(const Mesh &mesh) : mesh(mesh) {}

  std::optional<LayoutId> compose(unsigned shapeId, std::span<const int64_t> shape,
                                  std::span<const AxisPlacement> axes);
  LayoutId intern(Layout layout);
  const Layout &operator[](LayoutId id) const { return layouts[id]; }
  std::vector<Layout> take() { return std::move(layouts); }

private:
  const Mesh &mesh;
  std::vector<Layout> layouts;
  std::unordered_multimap<size_t, LayoutId> byHash;
  std::unordered_map<PlacementKey, std::optional<LayoutId>, PlacementKeyHash> composed;
  PlacementKey key; ///< scratch
};

} // namespace shardc

#endif // SHARDC_PASSES_PLACEMENT_CORE_COMPOSE_H
