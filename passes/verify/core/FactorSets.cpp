// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/verify/core/FactorSets.h"

#include <algorithm>

namespace shardc {

namespace {
/// Indices of the outer factor, all of which hold the same indices of what is inside.
struct Slab {
  Run outer;
  IndexSet inner;
};
} // namespace

static void append(IndexSet &set, Run run) {
  if (run.begin == run.end)
    return;
  if (!set.empty() && set.back().end == run.begin)
    set.back().end = run.end;
  else
    set.push_back(run);
}

/// Cuts the indices at multiples of `innerSize`. A run of whole multiples is one slab, so the work
/// is that of the runs, not of the outer factor.
static std::vector<Slab> slabs(std::span<const Run> indices, int64_t innerSize) {
  std::vector<Slab> result;
  auto add = [&](Run outer, Run inner) {
    if (!result.empty() && result.back().outer == outer)
      append(result.back().inner, inner);
    else
      result.push_back({outer, {inner}});
  };
  for (Run run : indices) {
    while (run.begin < run.end) {
      int64_t block = run.begin / innerSize, offset = run.begin % innerSize;
      if (offset == 0 && run.size() >= innerSize) {
        int64_t count = run.size() / innerSize;
        add({block, block + count}, {0, innerSize});
        run.begin += count * innerSize;
      } else {
        int64_t length = std::min(run.size(), innerSize - offset);
        add({block, block + 1}, {offset, offset + length});
        run.begin += length;
      }
    }
  }
  return result;
}

std::optional<std::vector<IndexSet>> factorize(std::span<const Run> indices,
                                               std::span<const int64_t> sizes) {
  IndexSet rest;
  for (Run run : indices)
    append(rest, run);
  std::vector<IndexSet> result;
  int64_t inner = 1;
  for (int64_t size : sizes)
    inner *= size;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (rest.empty())
      return std::vector<IndexSet>(sizes.size());
    inner /= sizes[i];
    std::vector<Slab> parts = slabs(rest, inner);
    IndexSet outer;
    for (const Slab &slab : parts) {
      if (slab.inner != parts.front().inner)
        return std::nullopt;
      append(outer, slab.outer);
    }
    result.push_back(std::move(outer));
    rest = parts.front().inner;
  }
  if (!sizes.empty())
    result.push_back(std::move(rest));
  return result;
}

size_t FactorSets::at(std::span<const int64_t> coordinate) const {
  size_t index = 0;
  for (size_t i = 0; i < axes.size(); ++i)
    index = index * sizes[i] + coordinate[axes[i]];
  return index;
}

bool FactorSets::dependsOn(unsigned axis) const {
  auto position = std::find(axes.begin(), axes.end(), axis);
  if (position == axes.end())
    return false;
  size_t stride = 1;
  for (size_t i = position - axes.begin() + 1; i < axes.size(); ++i)
    stride *= sizes[i];
  size_t count = sizes[position - axes.begin()];
  for (size_t i = 0; i < sets.size(); ++i) {
    if (i / stride % count != 0)
      continue;
    // Against the first along the axis that holds something: any of them may be empty.
    const IndexSet *first = nullptr;
    for (size_t k = 0; k < count; ++k) {
      size_t at = i + k * stride;
      if (undetermined[at])
        continue;
      if (first && *first != sets[at])
        return true;
      first = first ? first : &sets[at];
    }
  }
  return false;
}

bool FactorSets::isUndeterminedOn(unsigned axis) const {
  return std::find(axes.begin(), axes.end(), axis) != axes.end() &&
         std::find(undetermined.begin(), undetermined.end(), true) != undetermined.end();
}

/// Calls `visit` with every coordinate of the mesh that is 0 on the axes not listed.
template <typename Visit>
static void forEachCoordinate(const Mesh &mesh, std::span<const unsigned> axes, Visit visit) {
  Coordinate coordinate(mesh.numAxes(), 0);
  while (true) {
    visit(coordinate);
    size_t i = axes.size();
    while (i > 0 && ++coordinate[axes[i - 1]] == mesh.axes[axes[i - 1]].size)
      coordinate[axes[--i]] = 0;
    if (i == 0)
      return;
  }
}

std::vector<FactorSets> factorSetsOfDim(const DimSplit &split, int64_t size,
                                        std::span<const int64_t> factorSizes, const Mesh &mesh) {
  FactorSets sets;
  for (const AxisSplit &axis : split.axes) {
    sets.axes.push_back(axis.axis);
    sets.sizes.push_back(axis.count);
  }
  std::vector<FactorSets> result(factorSizes.size(), sets);
  bool products = true;
  forEachCoordinate(mesh, sets.axes, [&](const Coordinate &coordinate) {
    std::vector<Run> held = split.runs(size, coordinate);
    std::optional<std::vector<IndexSet>> factors = factorize(held, factorSizes);
    products &= factors.has_value();
    for (size_t i = 0; products && i < factorSizes.size(); ++i) {
      result[i].sets.push_back((*factors)[i]);
      result[i].undetermined.push_back(held.empty() && factorSizes.size() > 1);
    }
  });
  if (!products)
    result.clear();
  return result;
}

bool sameSets(const FactorSets &a, const FactorSets &b, const Mesh &mesh) {
  std::vector<unsigned> axes = a.axes;
  for (unsigned axis : b.axes)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end())
      axes.push_back(axis);
  bool same = true;
  forEachCoordinate(mesh, axes, [&](const Coordinate &coordinate) {
    size_t i = a.at(coordinate), j = b.at(coordinate);
    same &= a.undetermined[i] || b.undetermined[j] || a.sets[i] == b.sets[j];
  });
  return same;
}

} // namespace shardc
