// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/FindMesh.h"

#include "dialects/dist/FunctionAttributes.h"

#include <set>

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

std::optional<Mesh> shardc::dist::findMesh(FunctionOpInterface function) {
  if (auto module = function->getParentOfType<ModuleOp>())
    if (auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr))
      return mesh.getValue();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto layout = function.getArgAttrOfType<LayoutAttr>(i, kLayoutAttr))
      return layout.getValue().mesh;
  std::optional<Mesh> found;
  int64_t ranks = 0;
  function.walk([&](Operation *op) {
    GroupAttrInterface group;
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      group = collective.getGroup();
    else if (auto index = dyn_cast<AxisIndexOp>(op))
      group = index.getGroup();
    else if (auto extent = dyn_cast<ExtentOp>(op); extent && extent.getExtents().getMesh())
      found = extent.getExtents().getMesh().getValue();
    if (auto axes = dyn_cast_or_null<AxesAttr>(group))
      found = axes.getMesh().getValue();
    else if (auto lists = dyn_cast_or_null<GroupsAttr>(group))
      for (int64_t rank : lists.getRanks())
        ranks = std::max(ranks, rank + 1);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!found && ranks > 0 && ranks <= maxDevices)
    found = Mesh({{"rank", ranks}});
  return found;
}

bool shardc::dist::isNamedMesh(Operation *op, MeshAttr mesh) {
  auto module = op->getParentOfType<ModuleOp>();
  if (!module)
    return false;
  auto others = module->getAttrOfType<DictionaryAttr>(kMeshesAttr);
  return module->getAttr(kMeshAttr) == mesh ||
         (others &&
          llvm::any_of(others, [&](NamedAttribute other) { return other.getValue() == mesh; }));
}

std::optional<Mesh> shardc::dist::findWorld(ModuleOp module) {
  auto main = module->getAttrOfType<MeshAttr>(kMeshAttr);
  if (!main)
    return std::nullopt;
  std::set<int64_t> ranks;
  auto add = [&](const Mesh &mesh) {
    for (int64_t position = 0; position < mesh.numDevices(); ++position)
      ranks.insert(mesh.rankAtPosition(position));
  };
  add(main.getValue());
  size_t ofMain = ranks.size();
  if (auto others = module->getAttrOfType<DictionaryAttr>(kMeshesAttr))
    for (NamedAttribute other : others)
      if (auto mesh = dyn_cast<MeshAttr>(other.getValue()))
        add(mesh.getValue());
  if (ranks.size() == ofMain)
    return main.getValue();
  return Mesh::ofRanks({ranks.begin(), ranks.end()});
}
