// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How one tensor dim is split over mesh axes (semantics.md L3, L3a, L3b, L3c, L4): the only place
// where local extents and global indices of shards are computed (L7).
//
// A dim of N elements is split by a list of axes, outer to inner. Each axis splits the local index
// range [0, n) that the axes outside it left: the range is `blocks` equal blocks of n / blocks
// elements, each block is cut into consecutive pieces, one per coordinate on the axis, and the
// shard of a coordinate is the concatenation of its pieces. The pieces of a block of m elements are
//   - `sizes[r]` elements for coordinate r, where sizes are given (they sum to m);
//   - otherwise PyTorch's chunk in units of `granule` elements: u = ceil(m / granule) units,
//     c = ceil(u / count) units each, and coordinate r holds [r c g, (r + 1) c g) clipped to m.
// With one block and granule 1 this is exactly torch.chunk, so trailing shards may be empty.
//
// Blocks may also be of unequal sizes, which add up to n: each is chunked by itself, in units of a
// granule of its own. (Queries, keys and values of a fused projection, where several heads of
// queries share a head of keys.)
//
// A DimSplit does not hold N: the same value gives the extent for a dim known now and for a
// symbolic dim whose size is known only when the program runs.
#ifndef SHARDC_DIALECTS_SHARDING_DIMSPLIT_H
#define SHARDC_DIALECTS_SHARDING_DIMSPLIT_H

#include "dialects/sharding/Mesh.h"

#include <limits>

namespace shardc {

/// Size of a dim that is not known at compile time (the value MLIR's shaped types use).
inline constexpr int64_t kDynamic = std::numeric_limits<int64_t>::min();

/// Half-open interval of indices.
struct Run {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const Run &) const = default;
  int64_t size() const { return end - begin; }
};

/// One of several blocks of unequal sizes, chunked in units of `granule` elements.
struct SplitBlock {
  int64_t size = 0;
  int64_t granule = 1;
  auto operator<=>(const SplitBlock &) const = default;
};

/// The split of a local range by one mesh axis.
struct AxisSplit {
  unsigned axis = 0;  ///< index of the mesh axis
  int64_t count = 1;  ///< its size
  int64_t blocks = 1; ///< of equal sizes; 0: of unequal sizes, which `sizes` lists
  int64_t granule = 1;
  /// Per coordinate, within one block; empty: chunk. Of unequal blocks the size and the granule of
  /// each, one block after the other (see unequalBlocks).
  std::vector<int64_t> sizes;

  bool operator==(const AxisSplit &) const = default;
  bool isPlainChunk() const { return isOnePiece() && granule == 1 && sizes.empty(); }
  /// Whether a shard is one interval of the range.
  bool isOnePiece() const { return blocks == 1; }
  bool isUnequal() const { return blocks == 0; }
  /// The number of equal blocks that the range is, which for unequal ones is one.
  int64_t equalBlocks() const { return isUnequal() ? 1 : blocks; }

  /// The piece of coordinate `r` in a block of `m` elements, relative to the block's begin. Of
  /// unequal blocks, which m elements are: where the shard is among the shards in a row.
  Run pieceOfBlock(int64_t m, int64_t r) const;
  /// What coordinate `r` holds of a range of `n`: one interval for each block, in order.
  std::vector<Run> pieces(int64_t n, int64_t r) const;
  /// Elements that coordinate `r` holds of a range of `n`; `blocks` must divide n.
  int64_t extent(int64_t n, int64_t r) const;
  /// The extents of all coordinates.
  std::vector<int64_t> extents(int64_t n) const;
  /// What differs from a plain chunk, as it is written: `blocks = 3, granule = 64`; else nothing.
  std::string options() const;
};

struct DimSplit {
  std::vector<AxisSplit> axes; ///< outer to inner; empty: not split

  bool operator==(const DimSplit &) const = default;
  bool empty() const { return axes.empty(); }
  /// Whether both are over the same mesh axes, in the same order, however each shares out.
  bool isOverAxesOf(const DimSplit &other) const;

  /// Local extent at a mesh coordinate (one entry per mesh axis) of a dim of `n` elements.
  int64_t extent(int64_t n, std::span<const int64_t> coordinate) const;
  /// The global indices held at a coordinate: maximal intervals in local order. Nothing when empty.
  std::vector<Run> runs(int64_t n, std::span<const int64_t> coordinate) const;
  /// The coordinates of a global index on the split's axes (same order as `axes`) and its local
  /// index there. Every element has exactly one owner along the axes of one dim.
  struct Owner {
    std::vector<int64_t> coordinates;
    int64_t localIndex = 0;
  };
  Owner owner(int64_t n, int64_t globalIndex) const;
  /// Largest local extent over all coordinates.
  int64_t maxExtent(int64_t n) const;
  /// Whether all coordinates hold the same extent.
  bool isEven(int64_t n) const;
  /// The distinct extents before axis `level` splits, i.e. over the coordinates of the axes outside
  /// it; ascending. Level `axes.size()` gives the distinct local extents.
  std::vector<int64_t> distinctExtents(int64_t n, size_t level) const;
  /// Formula for a dim called `name`, e.g. `chunk(N, 4)[tp]`; axis names from the mesh.
  std::string expression(const Mesh &mesh, const std::string &name) const;
};

/// ceil(a / b) for a >= 0, b > 0.
inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Global index of a local index given its runs (the sum of run sizes must exceed `localIndex`).
int64_t globalIndexOf(std::span<const Run> runs, int64_t localIndex);

/// The sum of the sizes.
int64_t sizeOf(std::span<const SplitBlock> blocks);
/// Unequal blocks as AxisSplit::sizes lists them, and the reverse.
std::vector<int64_t> listOfBlocks(std::span<const SplitBlock> blocks);
std::vector<SplitBlock> unequalBlocks(std::span<const int64_t> sizes);

/// The options of a split as they are written: `blocks = 3, granule = 64`, `sizes = [5, 3]`, or
/// `blocks = [64, 32], granule = [16, 8]`. What is not written has no numbers.
struct SplitOptions {
  struct Numbers {
    std::vector<int64_t> values;
    bool isList = false;
  };
  Numbers blocks, granule, sizes;

  /// Writes them into a split. Returns what is wrong with them, or nothing.
  std::string apply(AxisSplit &split) const;
};

/// Elements of `runs` (seen as one concatenated range) at local interval `part`, appended to `out`
/// with adjacent intervals merged.
void appendSlice(std::span<const Run> runs, Run part, std::vector<Run> &out);

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_DIMSPLIT_H
