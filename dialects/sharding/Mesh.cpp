// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/Mesh.h"

#include <algorithm>
#include <functional>
#include <set>

namespace shardc {

Mesh Mesh::ofRanks(std::vector<int64_t> ranks) {
  bool isDefault = true;
  for (size_t i = 0; i < ranks.size(); ++i)
    isDefault &= ranks[i] == static_cast<int64_t>(i);
  std::vector<MeshAxis> axes{{"ranks", static_cast<int64_t>(ranks.size())}};
  return isDefault ? Mesh(std::move(axes)) : Mesh(std::move(axes), std::move(ranks));
}

int64_t Mesh::numDevices() const {
  int64_t count = 1;
  for (const MeshAxis &axis : axes)
    count *= axis.size;
  return count;
}

std::optional<unsigned> Mesh::axisIndex(std::string_view name) const {
  for (unsigned i = 0; i < axes.size(); ++i)
    if (axes[i].name == name)
      return i;
  return std::nullopt;
}

Coordinate Mesh::coordinateOfPosition(int64_t position) const {
  Coordinate coordinate(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    coordinate[i] = position % axes[i].size;
    position /= axes[i].size;
  }
  return coordinate;
}

int64_t Mesh::positionOfCoordinate(std::span<const int64_t> coordinate) const {
  int64_t position = 0;
  for (size_t i = 0; i < axes.size(); ++i)
    position = position * axes[i].size + coordinate[i];
  return position;
}

int64_t Mesh::rankAtPosition(int64_t position) const {
  return deviceIds.empty() ? position : deviceIds[position];
}

std::vector<int64_t> Mesh::ranks() const {
  std::vector<int64_t> list;
  for (int64_t position = 0, n = numDevices(); position < n; ++position)
    list.push_back(rankAtPosition(position));
  return list;
}

int64_t Mesh::rankOf(std::span<const int64_t> coordinate) const {
  return rankAtPosition(positionOfCoordinate(coordinate));
}

std::optional<Coordinate> Mesh::coordinateOf(int64_t rank) const {
  if (deviceIds.empty()) {
    if (rank < 0 || rank >= numDevices())
      return std::nullopt;
    return coordinateOfPosition(rank);
  }
  auto it = std::find(deviceIds.begin(), deviceIds.end(), rank);
  if (it == deviceIds.end())
    return std::nullopt;
  return coordinateOfPosition(it - deviceIds.begin());
}

std::vector<int64_t> Mesh::ranksOutside(int64_t worldSize) const {
  std::vector<bool> inside(static_cast<size_t>(std::max<int64_t>(worldSize, 0)), false);
  for (int64_t position = 0, e = numDevices(); position < e; ++position) {
    int64_t rank = rankAtPosition(position);
    if (rank >= 0 && rank < worldSize)
      inside[rank] = true;
  }
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    if (!inside[rank])
      ranks.push_back(rank);
  return ranks;
}

std::vector<int64_t> Mesh::groupOf(std::span<const int64_t> coordinate,
                                   std::span<const unsigned> groupAxes) const {
  Coordinate member(coordinate.begin(), coordinate.end());
  int64_t size = 1;
  for (unsigned axis : groupAxes)
    size *= axes[axis].size;
  std::vector<int64_t> ranks;
  ranks.reserve(size);
  for (int64_t i = 0; i < size; ++i) {
    int64_t rest = i;
    for (size_t k = groupAxes.size(); k-- > 0;) {
      member[groupAxes[k]] = rest % axes[groupAxes[k]].size;
      rest /= axes[groupAxes[k]].size;
    }
    ranks.push_back(rankOf(member));
  }
  return ranks;
}

std::vector<std::vector<int64_t>> Mesh::groups(std::span<const unsigned> groupAxes) const {
  std::vector<std::vector<int64_t>> result;
  for (int64_t position = 0, e = numDevices(); position < e; ++position) {
    Coordinate coordinate = coordinateOfPosition(position);
    bool first = std::all_of(groupAxes.begin(), groupAxes.end(),
                             [&](unsigned axis) { return coordinate[axis] == 0; });
    if (first)
      result.push_back(groupOf(coordinate, groupAxes));
  }
  return result;
}

std::vector<std::string> Mesh::validate() const {
  std::vector<std::string> errors;
  std::set<std::string> names;
  bool sizesValid = true;
  int64_t devices = 1;
  for (const MeshAxis &axis : axes) {
    if (axis.name.empty())
      errors.push_back("a mesh axis has no name");
    else if (!names.insert(axis.name).second)
      errors.push_back("mesh axis \"" + axis.name + "\" is named twice");
    if (axis.size < 1) {
      errors.push_back("mesh axis \"" + axis.name + "\" has size " + std::to_string(axis.size) +
                       ", expected at least 1");
      sizesValid = false;
    } else if (sizesValid && __builtin_mul_overflow(devices, axis.size, &devices)) {
      errors.push_back("the mesh has more devices than fit in 63 bits");
      sizesValid = false;
    }
  }
  if (deviceIds.empty())
    return errors;
  if (sizesValid && static_cast<int64_t>(deviceIds.size()) != devices)
    errors.push_back("the mesh lists " + std::to_string(deviceIds.size()) +
                     " device ids, but its axes need " + std::to_string(devices));
  std::set<int64_t> seen;
  for (int64_t id : deviceIds) {
    if (id < 0)
      errors.push_back("device id " + std::to_string(id) + " is negative");
    else if (!seen.insert(id).second)
      errors.push_back("device id " + std::to_string(id) + " is listed twice");
  }
  return errors;
}

size_t Mesh::hash() const {
  size_t seed = axes.size();
  for (const MeshAxis &axis : axes)
    seed = hashCombine(hashCombine(seed, std::hash<std::string>()(axis.name)),
                       static_cast<size_t>(axis.size));
  for (int64_t id : deviceIds)
    seed = hashCombine(seed, static_cast<size_t>(id));
  return seed;
}

std::string Mesh::str() const {
  std::string text = "[";
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i ? ", \"" : "\"") + axes[i].name + "\" = " + std::to_string(axes[i].size);
  text += "]";
  if (deviceIds.empty())
    return text;
  text += ", devices = [";
  for (size_t i = 0; i < deviceIds.size(); ++i)
    text += (i ? ", " : "") + std::to_string(deviceIds[i]);
  return text + "]";
}

} // namespace shardc
