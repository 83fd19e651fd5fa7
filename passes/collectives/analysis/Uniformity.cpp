// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/collectives/analysis/Uniformity.h"

#include "dialects/dist/FunctionAttributes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Uniformity::Mask Uniformity::allAxes() const {
  return (Mask(1) << std::min<unsigned>(ranks.getMesh().getValue().numAxes(), firstGroupBit)) - 1;
}

/// The same sets of ranks, whatever their order.
static std::vector<std::vector<int64_t>> sorted(std::vector<std::vector<int64_t>> groups) {
  for (std::vector<int64_t> &group : groups)
    llvm::sort(group);
  llvm::sort(groups);
  return groups;
}

Uniformity::Mask Uniformity::maskOf(GroupAttrInterface group) {
  auto [entry, added] = masks.try_emplace(group, 0);
  if (!added)
    return entry->second;
  const Mesh &mesh = ranks.getMesh().getValue();
  Mask mask = 0;
  if (auto axes = dyn_cast<AxesAttr>(group); axes && axes.getMesh() == ranks.getMesh()) {
    for (unsigned axis : axes.getAxisIndices())
      mask |= axis < firstGroupBit ? Mask(1) << axis : ~Mask(0);
    return masks[group] = mask;
  }
  // Rank lists may be the groups of some axes.
  constexpr unsigned maxAxes = 8;
  if (auto lists = group.getRankLists(); lists && mesh.numAxes() <= maxAxes) {
    std::vector<std::vector<int64_t>> wanted = sorted(std::move(*lists));
    for (Mask subset = 1; subset <= allAxes(); ++subset) {
      SmallVector<unsigned> axes;
      int64_t size = 1;
      for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
        if (subset >> axis & 1) {
          axes.push_back(axis);
          size *= mesh.axes[axis].size;
        }
      if (size == group.getGroupSize() && sorted(mesh.groups(axes)) == wanted)
        return masks[group] = subset;
    }
  }
  Attribute canonical = group.getCanonicalGroup();
  unsigned bit = bits.try_emplace(canonical, firstGroupBit + bits.size()).first->second;
  return masks[group] = bit < 64 ? Mask(1) << bit : 0;
}

Uniformity::Mask Uniformity::ofArgument(BlockArgument argument) const {
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  if (!function || argument.getOwner() != &function.getFunctionBody().front())
    return 0;
  DictionaryAttr attributes = function.getArgAttrDict(argument.getArgNumber());
  auto layout = attributes ? attributes.getAs<LayoutAttr>(kLayoutAttr) : LayoutAttr();
  if (!layout || layout.getMesh() != ranks.getMesh())
    return 0;
  Mask mask = 0;
  for (auto [axis, placement] : llvm::enumerate(layout.getValue().placements))
    if (placement.isReplicate() && axis < firstGroupBit)
      mask |= Mask(1) << axis;
  return mask;
}

/// Axes along which it does not change.
Uniformity::Mask Uniformity::ofExtent(ExtentsAttr extents) {
  if (!extents.getMesh())
    return ~Mask(0);
  if (extents.getMesh() != ranks.getMesh())
    return 0;
  Mask mask = allAxes();
  if (extents.getSize()) {
    for (const AxisSplit &axis : extents.getSplit().axes)
      if (axis.axis < firstGroupBit)
        mask &= ~(Mask(1) << axis.axis);
    return mask;
  }
  const Mesh &mesh = ranks.getMesh().getValue();
  for (unsigned axis = 0; axis < std::min<unsigned>(mesh.numAxes(), firstGroupBit); ++axis)
    for (auto [position, value] : llvm::enumerate(extents.getTable())) {
      Coordinate first = mesh.coordinateOfPosition(position);
      first[axis] = 0;
      if (extents.getTable()[mesh.positionOfCoordinate(first)] != value)
        mask &= ~(Mask(1) << axis);
    }
  return mask;
}

Uniformity::Mask Uniformity::ofResult(OpResult result, Mask operands) {
  Operation *op = result.getOwner();
  if (auto index = dyn_cast<AxisIndexOp>(op)) {
    Mask group = maskOf(index.getGroup());
    return group & ~allAxes() ? 0 : allAxes() & ~group;
  }
  if (auto extent = dyn_cast<ExtentOp>(op))
    return ofExtent(extent.getExtents());
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective)
    return isMemoryEffectFree(op) && op->getNumRegions() == 0 ? operands : 0;
  Mask group = maskOf(collective.getGroup());
  // Ranks that differ along another axis only are in groups that hold the same values.
  Mask others = group & ~allAxes() ? 0 : operands & allAxes() & ~group;
  switch (collective.getCollectiveKind()) {
  case CollectiveKind::AllReduce:
  case CollectiveKind::AllGather:
  case CollectiveKind::Broadcast:
    return others | group;
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
  case CollectiveKind::Permute:
    return others;
  }
  return 0;
}

Uniformity::Mask Uniformity::maskOf(Value value) {
  SmallVector<Value> stack{value};
  while (!stack.empty()) {
    Value at = stack.back();
    if (known.contains(at)) {
      stack.pop_back();
      continue;
    }
    auto result = dyn_cast<OpResult>(at);
    if (!result) {
      known[at] = ofArgument(cast<BlockArgument>(at));
      stack.pop_back();
      continue;
    }
    size_t before = stack.size();
    Mask operands = ~Mask(0);
    for (Value operand : result.getOwner()->getOperands()) {
      auto it = known.find(operand);
      if (it == known.end())
        stack.push_back(operand);
      else
        operands &= it->second;
    }
    if (stack.size() != before)
      continue;
    Mask mask = ofResult(result, operands);
    known[at] = mask;
    stack.pop_back();
  }
  return known.find(value)->second;
}

bool Uniformity::isUniform(Value value, GroupAttrInterface group) {
  Mask wanted = maskOf(group);
  // No bit, no knowledge. (A group without axes is a group of one: canonicalisation removes those.)
  return wanted != 0 && (maskOf(value) & wanted) == wanted;
}

void Uniformity::forget(Operation *op) {
  for (Value result : op->getResults())
    known.erase(result);
}
