// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/specialize/Devices.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Devices::Devices(const Mesh &mesh) {
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    ranks.push_back(mesh.rankAtPosition(position));
    deviceOfRank[ranks.back()] = position;
  }
}

const std::vector<std::optional<Coordinate>> &Devices::coordinatesIn(MeshAttr mesh) {
  auto [entry, added] = coordinates.try_emplace(mesh);
  if (!added)
    return entry->second;
  // By walking the mesh: looking ranks up in a mesh that lists its devices is linear for each.
  const Mesh &value = mesh.getValue();
  entry->second.resize(size());
  for (int64_t position = 0; position < value.numDevices(); ++position) {
    auto device = deviceOfRank.find(value.rankAtPosition(position));
    if (device != deviceOfRank.end())
      entry->second[device->second] = value.coordinateOfPosition(position);
  }
  return entry->second;
}

int64_t Devices::extent(ExtentsAttr extents, int64_t device) {
  auto noSymbols = [](StringRef) { return std::optional<int64_t>(); };
  if (!extents.getMesh())
    return *extents.evaluate({}, noSymbols);
  const std::optional<Coordinate> &coordinate = coordinatesIn(extents.getMesh())[device];
  return coordinate ? *extents.evaluate(*coordinate, noSymbols) : 0;
}

std::optional<int64_t> Devices::position(GroupAttrInterface group, int64_t device) {
  auto [entry, added] = positions.try_emplace(group);
  if (added) {
    entry->second.resize(size());
    if (auto lists = group.getRankLists())
      for (const std::vector<int64_t> &list : *lists)
        for (auto [position, rank] : llvm::enumerate(list))
          if (auto found = deviceOfRank.find(rank); found != deviceOfRank.end())
            entry->second[found->second] = static_cast<int64_t>(position);
  }
  return entry->second[device];
}
