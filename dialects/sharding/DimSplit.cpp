// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/DimSplit.h"

#include <algorithm>

namespace shardc {

Run AxisSplit::pieceOfBlock(int64_t m, int64_t r) const {
  if (!sizes.empty()) {
    int64_t begin = 0;
    for (int64_t i = 0; i < r; ++i)
      begin += sizes[i];
    return {begin, begin + sizes[r]};
  }
  int64_t piece = ceilDiv(ceilDiv(m, granule), count) * granule;
  return {std::min(m, r * piece), std::min(m, (r + 1) * piece)};
}

int64_t AxisSplit::extent(int64_t n, int64_t r) const {
  return blocks * pieceOfBlock(n / blocks, r).size();
}

std::vector<int64_t> AxisSplit::extents(int64_t n) const {
  std::vector<int64_t> result(count);
  for (int64_t r = 0; r < count; ++r)
    result[r] = extent(n, r);
  return result;
}

int64_t DimSplit::extent(int64_t n, std::span<const int64_t> coordinate) const {
  for (const AxisSplit &split : axes)
    n = split.extent(n, coordinate[split.axis]);
  return n;
}

void appendSlice(std::span<const Run> runs, Run part, std::vector<Run> &out) {
  int64_t offset = 0; // local index of the current run's begin
  for (const Run &run : runs) {
    int64_t begin = std::max(part.begin, offset), end = std::min(part.end, offset + run.size());
    if (begin < end) {
      Run piece{run.begin + begin - offset, run.begin + end - offset};
      if (!out.empty() && out.back().end == piece.begin)
        out.back().end = piece.end;
      else
        out.push_back(piece);
    }
    offset += run.size();
    if (offset >= part.end)
      return;
  }
}

std::vector<Run> DimSplit::runs(int64_t n, std::span<const int64_t> coordinate) const {
  std::vector<Run> held;
  if (n > 0)
    held.push_back({0, n});
  for (const AxisSplit &split : axes) {
    std::vector<Run> next;
    int64_t block = n / split.blocks;
    Run piece = split.pieceOfBlock(block, coordinate[split.axis]);
    for (int64_t b = 0; b < split.blocks; ++b)
      appendSlice(held, {b * block + piece.begin, b * block + piece.end}, next);
    n = split.blocks * piece.size();
    held = std::move(next);
  }
  return held;
}

DimSplit::Owner DimSplit::owner(int64_t n, int64_t index) const {
  Owner result;
  result.coordinates.reserve(axes.size());
  for (const AxisSplit &split : axes) {
    int64_t block = n / split.blocks;
    int64_t inBlock = index % block;
    int64_t r = 0;
    if (split.sizes.empty()) {
      int64_t piece = ceilDiv(ceilDiv(block, split.granule), split.count) * split.granule;
      r = inBlock / piece;
    } else {
      for (int64_t end = split.sizes[0]; inBlock >= end; end += split.sizes[r])
        ++r;
    }
    Run piece = split.pieceOfBlock(block, r);
    result.coordinates.push_back(r);
    index = index / block * piece.size() + inBlock - piece.begin;
    n = split.blocks * piece.size();
  }
  result.localIndex = index;
  return result;
}

std::vector<int64_t> DimSplit::distinctExtents(int64_t n, size_t level) const {
  std::vector<int64_t> current{n}, next;
  for (size_t i = 0; i < level; ++i) {
    next.clear();
    for (int64_t extent : current)
      for (int64_t r = 0; r < axes[i].count; ++r)
        next.push_back(axes[i].extent(extent, r));
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    current.swap(next);
  }
  return current;
}

int64_t DimSplit::maxExtent(int64_t n) const { return distinctExtents(n, axes.size()).back(); }

bool DimSplit::isEven(int64_t n) const { return distinctExtents(n, axes.size()).size() == 1; }

std::string DimSplit::expression(const Mesh &mesh, const std::string &name) const {
  std::string text = name;
  for (const AxisSplit &split : axes) {
    text = "chunk(" + text + ", " + std::to_string(split.count);
    if (split.blocks > 1)
      text += ", blocks = " + std::to_string(split.blocks);
    if (split.granule > 1)
      text += ", granule = " + std::to_string(split.granule);
    if (!split.sizes.empty()) {
      text += ", sizes = [";
      for (size_t i = 0; i < split.sizes.size(); ++i)
        text += (i ? ", " : "") + std::to_string(split.sizes[i]);
      text += "]";
    }
    text += ")[" + mesh.axes[split.axis].name + "]";
  }
  return text;
}

int64_t globalIndexOf(std::span<const Run> runs, int64_t localIndex) {
  for (const Run &run : runs) {
    if (localIndex < run.size())
      return run.begin + localIndex;
    localIndex -= run.size();
  }
  return -1;
}

} // namespace shardc
