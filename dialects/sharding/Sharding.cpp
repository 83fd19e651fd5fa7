// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/Sharding.h"

namespace shardc {

size_t Sharding::hash() const {
  size_t seed = mesh.hash();
  for (const AxisSharding &axis : axes) {
    seed = hashCombine(seed, axis.placement.hash());
    seed = hashCombine(seed, static_cast<size_t>(axis.strength));
    seed = hashCombine(seed, size_t(axis.given) | size_t(axis.storage) << 1 |
                                 size_t(axis.fixed) << 2 | size_t(axis.level) << 3);
  }
  return seed;
}

std::string wordsOf(const AxisSharding &sharding, unsigned axis) {
  std::string text;
  auto add = [&](const std::string &word) { text += (text.empty() ? "" : " ") + word; };
  if (sharding.given && sharding.placement.isShard())
    add("given");
  if (sharding.strength != Strength::Normal)
    add(sharding.strength == Strength::Pinned ? "pinned" : "weak");
  if (sharding.storage)
    add("storage");
  if (sharding.fixed)
    add("fixed");
  if (sharding.placement.isShard() && sharding.level != axis)
    add("level " + std::to_string(sharding.level));
  return text;
}

std::vector<std::string> Sharding::validate() const {
  std::vector<std::string> errors = mesh.validate();
  if (axes.size() != mesh.numAxes())
    errors.push_back("the mesh has " + std::to_string(mesh.numAxes()) + " axes, but " +
                     std::to_string(axes.size()) + " entries are given");
  if (!errors.empty())
    return errors;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    const AxisSharding &s = axes[axis];
    const Placement &p = s.placement;
    std::string where = "axis \"" + mesh.axes[axis].name + "\": " + p.str() + ": ";
    if (p.isOpen() && !(s == AxisSharding()))
      errors.push_back(where + "nothing is asked, so no word may follow");
    else if (!p.isShard() && (s.storage || s.fixed || s.level != 0))
      errors.push_back(where + "'storage', 'fixed' and 'level' are words about shards");
    else if (!p.isShard() && !p.isOpen() && !s.given)
      errors.push_back(where + "a tensor is replicated or partial only where that is given");
    if (s.storage && (s.fixed || !p.isPlainChunk()))
      errors.push_back(where + "storage chunks whatever is left, so it has no extents of its own");
    if (s.level >= mesh.numAxes())
      errors.push_back(where + "levels are less than the number of mesh axes, " +
                       std::to_string(mesh.numAxes()));
  }
  return errors;
}

std::vector<std::string> Sharding::validateShape(std::span<const int64_t> shape) const {
  std::vector<std::string> errors;
  for (unsigned axis = 0; axis < axes.size(); ++axis) {
    const Placement &p = axes[axis].placement;
    bool inRange = p.dim >= 0 && p.dim < static_cast<int64_t>(shape.size());
    if (!p.isShard() || (inRange && p.isPlainChunk()))
      continue; // nothing more can be wrong
    Layout alone(mesh);
    alone.placements[axis] = p;
    for (std::string &error : alone.validate(shape))
      errors.push_back(std::move(error));
  }
  return errors;
}

} // namespace shardc
