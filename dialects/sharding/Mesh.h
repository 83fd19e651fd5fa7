// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device meshes as plain values: names, coordinates, ranks and groups (semantics.md L5, L6).
//
// A mesh arranges `numDevices()` devices in a row-major N-dimensional grid (the last axis varies
// fastest). A device is named by its global rank: position i of the grid is rank i, or
// `deviceIds[i]` where a list is given.
#ifndef SHARDC_DIALECTS_SHARDING_MESH_H
#define SHARDC_DIALECTS_SHARDING_MESH_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// One coordinate per mesh axis, in mesh order.
using Coordinate = std::vector<int64_t>;

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis &) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;
  /// Global ranks in row-major order of coordinates; empty means 0, 1, 2, ...
  std::vector<int64_t> deviceIds;

  Mesh() = default;
  Mesh(std::vector<MeshAxis> axes, std::vector<int64_t> deviceIds = {})
      : axes(std::move(axes)), deviceIds(std::move(deviceIds)) {}

  /// A line of these ranks, one axis "ranks".
  static Mesh ofRanks(std::vector<int64_t> ranks);

  bool operator==(const Mesh &) const = default;

  unsigned numAxes() const { return static_cast<unsigned>(axes.size()); }
  /// Product of the axis sizes; 1 for a mesh without axes.
  int64_t numDevices() const;
  std::optional<unsigned> axisIndex(std::string_view name) const;

  /// Position in the grid (row-major) <-> coordinate.
  Coordinate coordinateOfPosition(int64_t position) const;
  int64_t positionOfCoordinate(std::span<const int64_t> coordinate) const;

  int64_t rankAtPosition(int64_t position) const;
  /// Of all positions, in order.
  std::vector<int64_t> ranks() const;
  int64_t rankOf(std::span<const int64_t> coordinate) const;
  /// Nothing for a rank that is not in the mesh (L5). Linear in the number of devices where ids are
  /// listed, constant otherwise.
  std::optional<Coordinate> coordinateOf(int64_t rank) const;
  /// Ranks of [0, worldSize) that are not in the mesh, ascending (L5).
  std::vector<int64_t> ranksOutside(int64_t worldSize) const;

  /// The groups that collectives over `groupAxes` form: one list of ranks for each coordinate of
  /// the other axes (row-major order of those). Inside a group, ranks are in row-major order of
  /// `groupAxes` as given: the first is the slowest.
  std::vector<std::vector<int64_t>> groups(std::span<const unsigned> groupAxes) const;
  /// The group of one coordinate, in the same order.
  std::vector<int64_t> groupOf(std::span<const int64_t> coordinate,
                               std::span<const unsigned> groupAxes) const;

  /// All that is wrong with this mesh; empty when it is usable.
  std::vector<std::string> validate() const;

  size_t hash() const;
  /// `["dp" = 2, "tp" = 4]`, then `, devices = [...]` where ids are listed.
  std::string str() const;
};

/// Combines hashes in order.
inline size_t hashCombine(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_MESH_H
