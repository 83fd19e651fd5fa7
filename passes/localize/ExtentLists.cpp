// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/ExtentLists.h"

using namespace mlir;
using namespace shardc;

/// values[q][p]: extent of group position q as the rank at mesh position p sees it.
static ExtentList fixedSizeList(LocalIndices &indices, int64_t size, const DimSplit &split,
                                size_t count) {
  const Mesh &mesh = indices.getMesh().getValue();
  auto inner = split.axes.end() - static_cast<ptrdiff_t>(count);
  DimSplit outer{{split.axes.begin(), inner}};
  int64_t blocks = inner->blocks, positions = 1;
  for (auto axis = inner; axis != split.axes.end(); ++axis)
    positions *= axis->count;

  std::vector<SmallVector<int64_t>> values(positions);
  bool chunked = true;
  for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p) {
    Coordinate coordinate = mesh.coordinateOfPosition(p);
    AxisSplit plain{0, positions, 1, 1, {}};
    int64_t whole = outer.extent(size, coordinate) / blocks;
    for (int64_t q = 0; q < positions; ++q) {
      int64_t rest = q; // row-major in the axes, outermost first
      for (auto axis = split.axes.end(); axis != inner;) {
        --axis;
        coordinate[axis->axis] = rest % axis->count;
        rest /= axis->count;
      }
      int64_t extent = split.extent(size, coordinate) / blocks;
      values[q].push_back(extent);
      chunked &= extent == plain.extent(whole, q);
    }
  }
  ExtentList list;
  if (chunked)
    return list;
  for (const SmallVector<int64_t> &byRank : values) {
    bool same = llvm::all_equal(byRank);
    list.fixed.push_back(same ? byRank.front() : kDynamic);
    if (!same)
      list.dynamic.push_back(indices.table(byRank));
  }
  return list;
}

ExtentList shardc::makeExtentList(LocalIndices &indices, const GlobalSize &size,
                                  const DimSplit &split, size_t count) {
  if (size.fixed() != kDynamic)
    return fixedSizeList(indices, size.fixed(), split, count);
  AxisShare share{size, split, split.axes.back()};
  share.outer.axes.pop_back();
  ExtentList list;
  if (share.split.granule == 1 && share.split.sizes.empty())
    return list;
  for (int64_t q = 0; q < share.split.count; ++q) {
    list.fixed.push_back(kDynamic);
    list.dynamic.push_back(indices.length(share, q));
  }
  return list;
}
