// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/core/RandomOffsets.h"

#include <algorithm>

namespace shardc {

int64_t shardNumber(const Mesh &mesh, const std::vector<DimSplit> &dims,
                    const Coordinate &coordinate) {
  int64_t number = 0;
  for (const DimSplit &dim : dims) {
    std::vector<unsigned> axes;
    for (const AxisSplit &split : dim.axes)
      axes.push_back(split.axis);
    std::sort(axes.begin(), axes.end());
    for (unsigned axis : axes)
      number = number * mesh.axes[axis].size + coordinate[axis];
  }
  return number;
}

const AxisSplit *lastSplit(const DimSplit &dim) {
  auto last = std::max_element(
      dim.axes.begin(), dim.axes.end(),
      [](const AxisSplit &one, const AxisSplit &other) { return one.axis < other.axis; });
  return last == dim.axes.end() ? nullptr : &*last;
}

int64_t randomStart(const Mesh &mesh, const std::vector<SplitDim> &dims,
                    const Coordinate &coordinate) {
  std::vector<DimSplit> splits;
  int64_t first = 1;
  for (const SplitDim &dim : dims) {
    splits.push_back(dim.split);
    const AxisSplit *split = lastSplit(dim.split);
    first *= split ? split->extent(dim.size, 0) : dim.size;
  }
  return randomAdvance(shardNumber(mesh, splits, coordinate) * first);
}

} // namespace shardc
