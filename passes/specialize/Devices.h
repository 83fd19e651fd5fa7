// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the devices of a program are in the meshes and groups it mentions.

#ifndef SHARDC_PASSES_SPECIALIZE_DEVICES_H
#define SHARDC_PASSES_SPECIALIZE_DEVICES_H

#include "dialects/dist/Dist.h"

#include "llvm/ADT/DenseMap.h"

namespace shardc {

/// A device is named by its position in the mesh of all ranks of the program (findWorld).
class Devices {
public:
  explicit Devices(const Mesh &mesh);

  int64_t size() const { return static_cast<int64_t>(ranks.size()); }
  int64_t rank(int64_t device) const { return ranks[device]; }

  bool isIn(dist::MeshAttr mesh, int64_t device) { return !!coordinatesIn(mesh)[device]; }
  /// Value of extents that depend on no symbol; 0 outside of their mesh (L5).
  int64_t extent(dist::ExtentsAttr extents, int64_t device);
  /// Position in the group; nothing where the device is in none, or the ranks are not known.
  std::optional<int64_t> position(dist::GroupAttrInterface group, int64_t device);

private:
  const std::vector<std::optional<Coordinate>> &coordinatesIn(dist::MeshAttr mesh);

  std::vector<int64_t> ranks; ///< by device
  llvm::DenseMap<int64_t, int64_t> deviceOfRank;
  llvm::DenseMap<mlir::Attribute, std::vector<std::optional<Coordinate>>> coordinates;
  llvm::DenseMap<mlir::Attribute, std::vector<std::optional<int64_t>>> positions;
};

} // namespace shardc

#endif // SHARDC_PASSES_SPECIALIZE_DEVICES_H
