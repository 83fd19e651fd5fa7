// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts as plain values: where the elements of a tensor are on a mesh (semantics.md L1 to L7).
//
// A layout is a mesh and one placement per mesh axis. Text form, one placement per axis in mesh
// order:
//   R                        replicated
//   S(1)                     dim 1 sharded, PyTorch's chunk (L3)
//   S(1, blocks = 3)         dim 1 is three equal blocks, each sharded (L3b)
//   S(1, blocks = [64, 32])  dim 1 is blocks of these sizes, each sharded (L3b)
//   S(1, blocks = [64, 32], granule = [16, 8])  each in units of its own; one number is for all
//   S(1, granule = 64)       chunk in units of 64 elements (L3c)
//   S(0, sizes = [5, 3, 0])  explicit extents, within one block (L4)
//   P(sum)                   partial: the value is the reduction over the axis
//   ?                        open: to be decided by propagation; never in a placed program
// e.g. `[S(0), R]`. Where several axes shard one dim in an order other than mesh order (L2), the
// order follows: `[S(0), S(0)], order = [1, 0]` shards over axis 1 first.
#ifndef SHARDC_DIALECTS_SHARDING_LAYOUT_H
#define SHARDC_DIALECTS_SHARDING_LAYOUT_H

#include "dialects/sharding/DimSplit.h"
#include "dialects/sharding/Mesh.h"
#include "support/Reduction.h"

namespace shardc {

enum class PlacementKind : uint8_t { Open, Replicate, Shard, Partial };

/// What one mesh axis does to a tensor. Fields that the kind does not use keep their defaults, so
/// that equality of members is equality of placements.
struct Placement {
  PlacementKind kind = PlacementKind::Open;
  int64_t dim = 0;                      ///< Shard: the tensor dim
  int64_t blocks = 1;                   ///< Shard: see DimSplit.h
  int64_t granule = 1;                  ///< Shard: see DimSplit.h; 1 where sizes are given
  std::vector<int64_t> sizes;           ///< Shard: explicit extents, see DimSplit.h, or empty
  Reduction reduction = Reduction::Sum; ///< Partial

  static Placement open() { return {}; }
  static Placement replicate() { return {PlacementKind::Replicate, 0, 1, 1, {}, Reduction::Sum}; }
  static Placement shard(int64_t dim, int64_t blocks = 1, std::vector<int64_t> sizes = {}) {
    return {PlacementKind::Shard, dim, blocks, 1, std::move(sizes), Reduction::Sum};
  }
  static Placement shardGranule(int64_t dim, int64_t granule, int64_t blocks = 1) {
    return {PlacementKind::Shard, dim, blocks, granule, {}, Reduction::Sum};
  }
  static Placement shardBlocks(int64_t dim, const std::vector<SplitBlock> &blocks) {
    return {PlacementKind::Shard, dim, 0, 1, listOfBlocks(blocks), Reduction::Sum};
  }
  /// What an axis does that splits `dim` so.
  static Placement shard(int64_t dim, const AxisSplit &split) {
    return {PlacementKind::Shard, dim, split.blocks, split.granule, split.sizes, Reduction::Sum};
  }
  static Placement partial(Reduction reduction = Reduction::Sum) {
    return {PlacementKind::Partial, 0, 1, 1, {}, reduction};
  }

  bool operator==(const Placement &) const = default;
  bool isOpen() const { return kind == PlacementKind::Open; }
  bool isReplicate() const { return kind == PlacementKind::Replicate; }
  bool isShard() const { return kind == PlacementKind::Shard; }
  bool isShard(int64_t d) const { return isShard() && dim == d; }
  bool isPartial() const { return kind == PlacementKind::Partial; }
  /// Of a shard: how axis number `axis`, of `count` coordinates, splits the dim.
  AxisSplit split(unsigned axis, int64_t count) const {
    return {axis, count, blocks, granule, sizes};
  }
  /// The reverse: a shard of `dim`, or what it does to its dim.
  void setSplit(const AxisSplit &split) { *this = shard(dim, split); }
  bool isUnequal() const { return blocks == 0; }
  bool isPlainChunk() const { return blocks == 1 && granule == 1 && sizes.empty(); }
  size_t hash() const;
  std::string str() const;
};

/// A parsed value, or why there is none.
template <typename T> struct Parsed {
  std::optional<T> value;
  std::string error;
  explicit operator bool() const { return value.has_value(); }
};

struct Layout {
  Mesh mesh;
  std::vector<Placement> placements; ///< one per mesh axis
  /// Permutation of the mesh axes, outer to inner: the order in which axes that shard one dim split
  /// it. Canonical: identity except among axes that share a dim.
  std::vector<unsigned> order;

  Layout() = default;
  explicit Layout(Mesh mesh); ///< all axes replicated
  Layout(Mesh mesh, std::vector<Placement> placements, std::vector<unsigned> order = {});

  bool operator==(const Layout &) const = default;

  bool isFullyReplicated() const;
  bool hasPartial() const;
  bool isDefaultOrder() const;

  /// The axes that shard `dim`, outer to inner.
  std::vector<unsigned> axesOfDim(int64_t dim) const;
  DimSplit splitOfDim(int64_t dim) const;
  std::vector<unsigned> partialAxes() const;

  /// This layout with another placement for `axis`, in canonical order; a shard becomes the
  /// innermost of its dim.
  Layout with(unsigned axis, Placement placement) const;

  /// Shape of what the device at `coordinate` holds. A dim of size kDynamic stays kDynamic where it
  /// is sharded and where it is not: evaluate splitOfDim(d) once its size is known.
  std::vector<int64_t> localShape(std::span<const int64_t> shape,
                                  std::span<const int64_t> coordinate) const;
  /// The same for a global rank: all zeros for a rank outside the mesh (L5).
  std::vector<int64_t> localShapeOfRank(std::span<const int64_t> shape, int64_t rank) const;
  /// Global index of the local element `index` at `coordinate`.
  std::vector<int64_t> globalIndex(std::span<const int64_t> shape,
                                   std::span<const int64_t> coordinate,
                                   std::span<const int64_t> index) const;
  /// Ranks that hold (a replica or a partial value of) a global element, in row-major order of
  /// coordinates.
  std::vector<int64_t> owners(std::span<const int64_t> shape, std::span<const int64_t> index) const;
  /// Whether all devices hold the same extents of every dim. A sharded dynamic dim counts as
  /// uneven.
  bool isEven(std::span<const int64_t> shape) const;

  /// The canonical form of a valid layout for tensors of `shape`; it places every element as this
  /// one does, and layouts that say the same split in different words become equal. Sizes, blocks
  /// and granules that say what plain chunk says are dropped; a granule becomes sizes where the
  /// range that it splits is known and the same everywhere; the order is the identity where no dim
  /// is shared.
  Layout canonicalize(std::span<const int64_t> shape) const;

  /// All that is wrong with this layout for tensors of `shape` (kDynamic dims allowed); empty when
  /// it is usable. Open placements are allowed only with `allowOpen`.
  std::vector<std::string> validate(std::span<const int64_t> shape, bool allowOpen = false) const;

  size_t hash() const;
  /// `[S(0), R]`, with `, order = [...]` where it is not the default.
  std::string str() const;
};

/// Parses one placement, e.g. `S(1, blocks = 3)`. Spaces are free. `P` alone is P(sum).
Parsed<Placement> parsePlacement(std::string_view text);
/// Parses Layout::str() for a given mesh.
Parsed<Layout> parseLayout(const Mesh &mesh, std::string_view text);

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_LAYOUT_H
