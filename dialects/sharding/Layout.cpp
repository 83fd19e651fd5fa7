// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/Layout.h"

#include <algorithm>
#include <numeric>

namespace shardc {

static std::vector<unsigned> identityOrder(size_t n) {
  std::vector<unsigned> order(n);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

size_t Placement::hash() const {
  size_t seed = hashCombine(static_cast<size_t>(kind), static_cast<size_t>(dim));
  seed = hashCombine(hashCombine(seed, static_cast<size_t>(blocks)), static_cast<size_t>(granule));
  for (int64_t size : sizes)
    seed = hashCombine(seed, static_cast<size_t>(size));
  return hashCombine(seed, static_cast<size_t>(reduction));
}

Layout::Layout(Mesh mesh) : mesh(std::move(mesh)) {
  placements.assign(this->mesh.numAxes(), Placement::replicate());
  order = identityOrder(placements.size());
}

Layout::Layout(Mesh mesh, std::vector<Placement> placements, std::vector<unsigned> order)
    : mesh(std::move(mesh)), placements(std::move(placements)), order(std::move(order)) {
  if (this->order.empty())
    this->order = identityOrder(this->placements.size());
}

bool Layout::isFullyReplicated() const {
  return std::all_of(placements.begin(), placements.end(),
                     [](const Placement &p) { return p.isReplicate(); });
}

bool Layout::hasPartial() const {
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement &p) { return p.isPartial(); });
}

bool Layout::isDefaultOrder() const { return std::is_sorted(order.begin(), order.end()); }

std::vector<unsigned> Layout::axesOfDim(int64_t dim) const {
  std::vector<unsigned> axes;
  for (unsigned axis : order)
    if (placements[axis].isShard(dim))
      axes.push_back(axis);
  return axes;
}

DimSplit Layout::splitOfDim(int64_t dim) const {
  DimSplit split;
  split.axes.reserve(static_cast<size_t>(std::count_if(
      placements.begin(), placements.end(), [&](const Placement &p) { return p.isShard(dim); })));
  for (unsigned axis : order) {
    const Placement &p = placements[axis];
    if (p.isShard(dim))
      split.axes.push_back(p.split(axis, mesh.axes[axis].size));
  }
  return split;
}

std::vector<unsigned> Layout::partialAxes() const {
  std::vector<unsigned> axes;
  for (unsigned axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].isPartial())
      axes.push_back(axis);
  return axes;
}

/// The order in which the axes of each dim keep their order in `order`, at the positions that they
/// would take in mesh order.
static std::vector<unsigned> canonicalOrder(const std::vector<Placement> &placements,
                                            const std::vector<unsigned> &order) {
  std::vector<unsigned> result = identityOrder(placements.size());
  if (order == result)
    return result;
  // Positions take the axes of their dim one after the other.
  auto nextOfDim = [&](std::vector<unsigned>::const_iterator from, int64_t dim) {
    return std::find_if(from, order.end(),
                        [&](unsigned axis) { return placements[axis].isShard(dim); });
  };
  for (unsigned position = 0; position < result.size(); ++position) {
    if (!placements[position].isShard())
      continue;
    int64_t dim = placements[position].dim;
    auto axis = nextOfDim(order.begin(), dim);
    for (unsigned before = 0; before < position && axis != order.end(); ++before)
      if (placements[before].isShard(dim))
        axis = nextOfDim(axis + 1, dim);
    if (axis != order.end()) // which an order that names every axis has
      result[position] = *axis;
  }
  return result;
}

Layout Layout::with(unsigned axis, Placement placement) const {
  Layout result = *this;
  result.placements[axis] = std::move(placement);
  std::erase(result.order, axis);
  result.order.push_back(axis);
  result.order = canonicalOrder(result.placements, result.order);
  return result;
}

std::vector<int64_t> Layout::localShape(std::span<const int64_t> shape,
                                        std::span<const int64_t> coordinate) const {
  std::vector<int64_t> local(shape.begin(), shape.end());
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != kDynamic)
      local[d] = splitOfDim(static_cast<int64_t>(d)).extent(shape[d], coordinate);
  return local;
}

std::vector<int64_t> Layout::localShapeOfRank(std::span<const int64_t> shape, int64_t rank) const {
  if (std::optional<Coordinate> coordinate = mesh.coordinateOf(rank))
    return localShape(shape, *coordinate);
  return std::vector<int64_t>(shape.size(), 0);
}

std::vector<int64_t> Layout::globalIndex(std::span<const int64_t> shape,
                                         std::span<const int64_t> coordinate,
                                         std::span<const int64_t> index) const {
  std::vector<int64_t> global(index.begin(), index.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = splitOfDim(static_cast<int64_t>(d));
    if (!split.empty())
      global[d] = globalIndexOf(split.runs(shape[d], coordinate), index[d]);
  }
  return global;
}

std::vector<int64_t> Layout::owners(std::span<const int64_t> shape,
                                    std::span<const int64_t> index) const {
  Coordinate coordinate(placements.size(), 0);
  std::vector<unsigned> freeAxes = identityOrder(placements.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = splitOfDim(static_cast<int64_t>(d));
    DimSplit::Owner owner = split.owner(shape[d], index[d]);
    for (size_t i = 0; i < split.axes.size(); ++i) {
      coordinate[split.axes[i].axis] = owner.coordinates[i];
      std::erase(freeAxes, split.axes[i].axis);
    }
  }
  return mesh.groupOf(coordinate, freeAxes);
}

bool Layout::isEven(std::span<const int64_t> shape) const {
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = splitOfDim(static_cast<int64_t>(d));
    if (!split.empty() && (shape[d] == kDynamic || !split.isEven(shape[d])))
      return false;
  }
  return true;
}

/// Blocks of unequal sizes in plain words: those that are equal after all, blocks without elements,
/// and granules that say what smaller ones say, are dropped. Where every coordinate has one
/// interval, these are explicit sizes.
static void simplifyBlocks(AxisSplit &split) {
  std::vector<SplitBlock> blocks = unequalBlocks(split.sizes);
  std::erase_if(blocks, [](const SplitBlock &block) { return block.size == 0; });
  split.sizes = listOfBlocks(blocks);
  int64_t n = sizeOf(blocks), end = 0;
  bool isOnePiece = true;
  for (int64_t r = 0; r < split.count; ++r)
    for (const Run &piece : split.pieces(n, r))
      if (piece.begin < piece.end) {
        isOnePiece &= piece.begin == end;
        end = piece.end;
      }
  if (isOnePiece) {
    std::vector<int64_t> sizes = split.extents(n);
    split.blocks = 1;
    split.sizes = std::move(sizes);
    return;
  }
  for (SplitBlock &block : blocks) {
    auto ofGranule = [&](int64_t granule) {
      return AxisSplit{0, split.count, 1, granule, {}}.extents(block.size);
    };
    std::vector<int64_t> extents = ofGranule(block.granule);
    for (int64_t granule = 1; granule < block.granule; ++granule)
      if (block.size % granule == 0 && ofGranule(granule) == extents)
        block.granule = granule;
  }
  split.sizes = listOfBlocks(blocks);
  if (std::all_of(blocks.begin(), blocks.end(),
                  [&](const SplitBlock &block) { return block == blocks.front(); })) {
    split.blocks = static_cast<int64_t>(blocks.size());
    split.granule = blocks.front().granule;
    split.sizes.clear();
  }
}

/// Unique form of one split of a range whose possible sizes are `extents` (none: unknown).
static void canonicalizeSplit(AxisSplit &split, const std::vector<int64_t> &extents) {
  if (extents.empty())
    return;
  if (split.isUnequal())
    simplifyBlocks(split);
  if (split.isUnequal())
    return;
  auto all = [&](auto &&holds) {
    return std::all_of(extents.begin(), extents.end(), [&](int64_t n) {
      for (int64_t r = 0; r < split.count; ++r)
        if (!holds(n, r))
          return false;
      return true;
    });
  };
  bool single = extents.size() == 1;
  // Where every coordinate holds all or nothing, blocks make no difference.
  bool allOrNothing = all([&](int64_t n, int64_t r) {
    int64_t extent = split.extent(n, r);
    return extent == 0 || extent == n;
  });
  AxisSplit chunk{split.axis, split.count, allOrNothing ? 1 : split.blocks, 1, {}};
  if (all([&](int64_t n, int64_t r) { return split.extent(n, r) == chunk.extent(n, r); })) {
    split = chunk;
    return;
  }
  if (!single)
    return;
  std::vector<int64_t> sizes;
  for (int64_t r = 0; r < split.count; ++r)
    sizes.push_back(split.extent(extents.front(), r) / chunk.blocks);
  split = chunk;
  split.sizes = std::move(sizes);
}

Layout Layout::canonicalize(std::span<const int64_t> shape) const {
  Layout result = *this;
  for (size_t d = 0; d < shape.size(); ++d) {
    DimSplit split = splitOfDim(static_cast<int64_t>(d));
    for (size_t level = 0; level < split.axes.size(); ++level) {
      if (split.axes[level].isPlainChunk())
        continue;
      std::vector<int64_t> extents;
      if (shape[d] != kDynamic)
        extents = split.distinctExtents(shape[d], level);
      canonicalizeSplit(split.axes[level], extents);
      result.placements[split.axes[level].axis].setSplit(split.axes[level]);
    }
  }
  result.order = canonicalOrder(placements, order);
  return result;
}

size_t Layout::hash() const {
  size_t seed = mesh.hash();
  for (const Placement &p : placements)
    seed = hashCombine(seed, p.hash());
  for (unsigned axis : order)
    seed = hashCombine(seed, axis);
  return seed;
}

} // namespace shardc
