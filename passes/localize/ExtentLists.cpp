// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/ExtentLists.h"

#include <map>

using namespace mlir;
using namespace shardc;

/// Of a dim of known size. The pieces depend on where a rank is along the outer axes, and on
/// nothing else of it: they are computed once for each such place, and not for each rank.
static ExtentList fixedSizeList(LocalIndices &indices, int64_t size, const DimSplit &split,
                                size_t count) {
  const Mesh &mesh = indices.getMesh().getValue();
  auto inner = split.axes.end() - static_cast<ptrdiff_t>(count);
  DimSplit outer{{split.axes.begin(), inner}};
  int64_t blocks = inner->equalBlocks(), positions = 1;
  for (auto axis = inner; axis != split.axes.end(); ++axis)
    positions *= axis->count;

  std::map<std::vector<int64_t>, size_t> places; // coordinates along the outer axes -> row
  std::vector<std::vector<int64_t>> rows;        // by place, then group position
  std::vector<size_t> rowOf;                     // by mesh position
  bool chunked = true;
  for (int64_t p = 0, n = mesh.numDevices(); p < n; ++p) {
    Coordinate coordinate = mesh.coordinateOfPosition(p);
    std::vector<int64_t> place;
    for (const AxisSplit &axis : outer.axes)
      place.push_back(coordinate[axis.axis]);
    auto [known, added] = places.try_emplace(std::move(place), rows.size());
    rowOf.push_back(known->second);
    if (!added)
      continue;
    AxisSplit plain{0, positions, 1, 1, {}};
    int64_t whole = outer.extent(size, coordinate) / blocks;
    std::vector<int64_t> &row = rows.emplace_back();
    for (int64_t q = 0; q < positions; ++q) {
      int64_t rest = q; // row-major in the axes, outermost first
      for (auto axis = split.axes.end(); axis != inner;) {
        --axis;
        coordinate[axis->axis] = rest % axis->count;
        rest /= axis->count;
      }
      row.push_back(split.extent(size, coordinate) / blocks);
      chunked &= row.back() == plain.extent(whole, q);
    }
  }
  ExtentList list;
  if (chunked)
    return list;
  for (int64_t q = 0; q < positions; ++q) {
    bool same = llvm::all_of(rows, [&](const auto &row) { return row[q] == rows.front()[q]; });
    list.fixed.push_back(same ? rows.front()[q] : kDynamic);
    if (same)
      continue;
    SmallVector<int64_t> byRank;
    for (size_t row : rowOf)
      byRank.push_back(rows[row][q]);
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
