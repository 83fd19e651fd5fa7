// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/Aliases.h"
#include "dialects/dist/Dist.h"
#include "dialects/sharding/Sharding.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

/// `S0tp`, `S0x3tp` (3 blocks), `S0x64_32_32tp` (blocks of these sizes), `S0by64tp` (granule 64),
/// `S0_5_3_tp` (sizes), `Psumtp` is `Ptp`.
static void printPlacement(const shardc::Placement &placement, StringRef axis,
                           llvm::raw_ostream &os) {
  if (placement.isOpen()) {
    os << "open_" << axis;
    return;
  }
  if (placement.isPartial()) {
    os << "P";
    if (placement.reduction != shardc::Reduction::Sum)
      os << shardc::reductionName(placement.reduction) << "_";
    os << axis;
    return;
  }
  os << "S" << placement.dim;
  if (placement.blocks > 1)
    os << "x" << placement.blocks;
  if (placement.granule != 1)
    os << "by" << placement.granule;
  constexpr size_t maxSizesShown = 8;
  if (placement.isUnequal()) {
    std::vector<SplitBlock> blocks = unequalBlocks(placement.sizes);
    if (blocks.size() > maxSizesShown)
      os << "_blocks_";
    else
      llvm::interleave(blocks, os << "x", [&](const SplitBlock &block) { os << block.size; }, "_");
    os << axis;
    return;
  }
  if (placement.sizes.size() > maxSizesShown)
    os << "_sizes";
  else
    for (int64_t size : placement.sizes)
      os << "_" << size;
  os << (placement.sizes.empty() ? "" : "_") << axis;
}

static void printLayout(const shardc::Layout &layout, llvm::raw_ostream &os) {
  bool first = true;
  for (unsigned axis : layout.order) {
    const shardc::Placement &placement = layout.placements[axis];
    if (placement.isReplicate())
      continue;
    os << (first ? "" : "_");
    printPlacement(placement, layout.mesh.axes[axis].name, os);
    first = false;
  }
  if (first)
    os << "R";
}

/// `sharding_S0dp_given`: the axes that something is asked of, with the words of the text form.
static void printSharding(const shardc::Sharding &sharding, llvm::raw_ostream &os) {
  os << "sharding";
  bool open = true;
  for (auto [number, axis] : llvm::enumerate(sharding.axes)) {
    const std::string &name = sharding.mesh.axes[number].name;
    if (axis.placement.isOpen())
      continue;
    open = false;
    os << "_";
    if (axis.placement.isReplicate())
      os << "R" << name;
    else
      printPlacement(axis.placement, name, os);
    std::string words = wordsOf(axis, static_cast<unsigned>(number));
    std::replace(words.begin(), words.end(), ' ', '_');
    os << (words.empty() ? "" : "_") << words;
  }
  os << (open ? "_open" : "");
}

AliasInterface::AliasResult AliasInterface::getAlias(Attribute attr, llvm::raw_ostream &os) const {
  if (isa<MeshAttr>(attr)) {
    os << "mesh";
    return AliasResult::FinalAlias;
  }
  if (auto layout = dyn_cast<LayoutAttr>(attr)) {
    printLayout(layout.getValue(), os);
    return AliasResult::FinalAlias;
  }
  if (auto sharding = dyn_cast<ShardingAttr>(attr)) {
    printSharding(sharding.getValue(), os);
    return AliasResult::FinalAlias;
  }
  if (auto axes = dyn_cast<AxesAttr>(attr)) {
    llvm::interleave(axes.getAxes(), os, [&](StringAttr axis) { os << axis.getValue(); }, "_");
    return axes.getAxes().empty() ? AliasResult::NoAlias : AliasResult::FinalAlias;
  }
  if (isa<GroupsAttr>(attr)) {
    os << "group";
    return AliasResult::FinalAlias;
  }
  return AliasResult::NoAlias;
}
