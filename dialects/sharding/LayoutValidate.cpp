// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What makes a layout usable for a shape (semantics.md L1, L2, L3b, L3c and L4).
#include "dialects/sharding/Layout.h"

#include <algorithm>
#include <numeric>

namespace shardc {

static std::string axisText(const Mesh &mesh, unsigned axis) {
  return "axis \"" + mesh.axes[axis].name + "\": ";
}

/// What is wrong with the placement alone; true when its split may be evaluated.
static bool validatePlacement(const Layout &layout, unsigned axis, std::span<const int64_t> shape,
                              std::vector<std::string> &errors) {
  const Placement &p = layout.placements[axis];
  if (!p.isShard())
    return true;
  size_t before = errors.size();
  std::string where = axisText(layout.mesh, axis) + p.str() + ": ";
  int64_t rank = static_cast<int64_t>(shape.size());
  if (p.dim < 0 || p.dim >= rank)
    errors.push_back(where + "dim " + std::to_string(p.dim) +
                     " is out of range for a tensor of rank " + std::to_string(rank));
  if (p.blocks < 0 || (p.isUnequal() && p.sizes.empty()))
    errors.push_back(where + "blocks must be at least 1");
  if (p.granule < 1)
    errors.push_back(where + "granule must be at least 1");
  for (const SplitBlock &block : unequalBlocks(p.sizes)) {
    if (!p.isUnequal())
      break;
    if (block.size < 0)
      errors.push_back(where + "the size of a block must not be negative");
    if (block.granule < 1)
      errors.push_back(where + "granule must be at least 1");
    else if (block.size % block.granule)
      errors.push_back(where + "granule " + std::to_string(block.granule) +
                       " does not divide the block of " + std::to_string(block.size));
  }
  if (errors.size() == before && p.isUnequal() && shape[p.dim] == kDynamic)
    errors.push_back(where + "dim " + std::to_string(p.dim) +
                     " has no fixed size, so its blocks cannot have explicit sizes");
  if (p.sizes.empty() || p.isUnequal())
    return errors.size() == before;
  if (p.granule != 1)
    errors.push_back(where + "granule and sizes exclude each other");
  int64_t count = layout.mesh.axes[axis].size;
  if (static_cast<int64_t>(p.sizes.size()) != count)
    errors.push_back(where + "expected " + std::to_string(count) +
                     " sizes, one per coordinate, got " + std::to_string(p.sizes.size()));
  if (std::any_of(p.sizes.begin(), p.sizes.end(), [](int64_t size) { return size < 0; }))
    errors.push_back(where + "sizes must not be negative");
  if (errors.size() == before && shape[p.dim] == kDynamic)
    errors.push_back(where + "dim " + std::to_string(p.dim) +
                     " has no fixed size, so its shards cannot have explicit sizes");
  return errors.size() == before;
}

/// Blocks, granules and sizes must fit every range that the axes outside leave.
static void validateSplit(const Layout &layout, int64_t dim, int64_t size,
                          std::vector<std::string> &errors) {
  DimSplit split = layout.splitOfDim(dim);
  for (size_t level = 0; level < split.axes.size(); ++level) {
    const AxisSplit &s = split.axes[level];
    if (s.isPlainChunk()) // which fits every range
      continue;
    std::string where = axisText(layout.mesh, s.axis) + layout.placements[s.axis].str() + ": ";
    for (int64_t extent : split.distinctExtents(size, level)) {
      std::string range =
          level == 0 ? "dim " + std::to_string(dim) + " of " + std::to_string(extent)
                     : "a shard of " + std::to_string(extent) + " of dim " + std::to_string(dim);
      if (s.isUnequal()) {
        int64_t sum = sizeOf(unequalBlocks(s.sizes));
        if (sum == extent)
          continue;
        errors.push_back(where + "the blocks add up to " + std::to_string(sum) + ", but " + range +
                         " needs " + std::to_string(extent));
        return;
      }
      if (extent % s.blocks) {
        errors.push_back(where + std::to_string(s.blocks) + " blocks do not divide " + range);
        return;
      }
      int64_t block = extent / s.blocks;
      if (block % s.granule)
        errors.push_back(where + "granule " + std::to_string(s.granule) + " does not divide " +
                         range +
                         (s.blocks > 1 ? " in " + std::to_string(s.blocks) + " blocks" : ""));
      int64_t sum = std::accumulate(s.sizes.begin(), s.sizes.end(), int64_t(0));
      if (!s.sizes.empty() && sum != block) {
        errors.push_back(where + "sizes sum to " + std::to_string(sum) + ", but " + range +
                         (s.blocks > 1 ? " has blocks of " + std::to_string(block)
                                       : " needs " + std::to_string(block)));
        return;
      }
    }
  }
}

std::vector<std::string> Layout::validate(std::span<const int64_t> shape, bool allowOpen) const {
  std::vector<std::string> errors = mesh.validate();
  if (!errors.empty())
    return errors;
  if (placements.size() != mesh.axes.size())
    return {"the mesh has " + std::to_string(mesh.axes.size()) + " axes, but the layout has " +
            std::to_string(placements.size()) + " placements"};
  std::vector<unsigned> sorted = order, identity(placements.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(identity.begin(), identity.end(), 0u);
  if (sorted != identity)
    return {"the order must name every mesh axis once"};

  bool evaluable = true;
  for (unsigned axis = 0; axis < placements.size(); ++axis) {
    if (placements[axis].isOpen() && !allowOpen)
      errors.push_back(axisText(mesh, axis) + "the placement is open, expected R, S or P");
    evaluable &= validatePlacement(*this, axis, shape, errors);
  }
  if (!evaluable)
    return errors;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != kDynamic)
      validateSplit(*this, static_cast<int64_t>(d), shape[d], errors);
  return errors;
}

} // namespace shardc
