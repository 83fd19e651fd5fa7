// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/DimSplit.h"

#include <algorithm>

namespace shardc {

/// PyTorch's chunk in units of `granule` elements.
static Run chunk(int64_t m, int64_t granule, int64_t count, int64_t r) {
  int64_t piece = ceilDiv(ceilDiv(m, granule), count) * granule;
  return {std::min(m, r * piece), std::min(m, (r + 1) * piece)};
}

int64_t sizeOf(std::span<const SplitBlock> blocks) {
  int64_t total = 0;
  for (const SplitBlock &block : blocks)
    total += block.size;
  return total;
}

std::vector<int64_t> listOfBlocks(std::span<const SplitBlock> blocks) {
  std::vector<int64_t> list;
  for (const SplitBlock &block : blocks)
    list.insert(list.end(), {block.size, block.granule});
  return list;
}

std::vector<SplitBlock> unequalBlocks(std::span<const int64_t> sizes) {
  std::vector<SplitBlock> blocks;
  for (size_t i = 0; i + 1 < sizes.size(); i += 2)
    blocks.push_back({sizes[i], sizes[i + 1]});
  return blocks;
}

std::string SplitOptions::apply(AxisSplit &split) const {
  split.sizes = sizes.values;
  if (!blocks.isList) {
    if (granule.isList)
      return "several granules are for several blocks, whose sizes are given: blocks = [64, 32]";
    if (!blocks.values.empty())
      split.blocks = blocks.values.front();
    if (split.blocks < 1 && !sizes.values.empty())
      return "blocks must be at least 1";
    if (!granule.values.empty())
      split.granule = granule.values.front();
    return "";
  }
  if (blocks.values.empty())
    return "expected the sizes of one block or more";
  if (!sizes.values.empty())
    return "blocks whose sizes are given and the sizes of shards exclude each other";
  if (granule.isList && granule.values.size() != blocks.values.size())
    return "expected a granule for each of " + std::to_string(blocks.values.size()) +
           " blocks, got " + std::to_string(granule.values.size());
  split.blocks = 0;
  for (size_t i = 0; i < blocks.values.size(); ++i) {
    int64_t unit = granule.isList           ? granule.values[i]
                   : granule.values.empty() ? 1
                                            : granule.values.front();
    split.sizes.insert(split.sizes.end(), {blocks.values[i], unit});
  }
  return "";
}

Run AxisSplit::pieceOfBlock(int64_t m, int64_t r) const {
  if (isUnequal()) {
    Run run;
    for (const SplitBlock &block : unequalBlocks(sizes)) {
      Run piece = chunk(block.size, block.granule, count, r);
      run.begin += piece.begin; // elements of the coordinates before
      run.end += piece.end;
    }
    return run;
  }
  if (!sizes.empty()) {
    int64_t begin = 0;
    for (int64_t i = 0; i < r; ++i)
      begin += sizes[i];
    return {begin, begin + sizes[r]};
  }
  return chunk(m, granule, count, r);
}

std::vector<Run> AxisSplit::pieces(int64_t n, int64_t r) const {
  std::vector<Run> result;
  int64_t begin = 0;
  if (isUnequal()) {
    for (const SplitBlock &block : unequalBlocks(sizes)) {
      Run piece = chunk(block.size, block.granule, count, r);
      result.push_back({begin + piece.begin, begin + piece.end});
      begin += block.size;
    }
    return result;
  }
  Run piece = pieceOfBlock(n / blocks, r);
  for (int64_t b = 0; b < blocks; ++b, begin += n / blocks)
    result.push_back({begin + piece.begin, begin + piece.end});
  return result;
}

int64_t AxisSplit::extent(int64_t n, int64_t r) const {
  return equalBlocks() * pieceOfBlock(n / equalBlocks(), r).size();
}

std::vector<int64_t> AxisSplit::extents(int64_t n) const {
  std::vector<int64_t> result(count);
  for (int64_t r = 0; r < count; ++r)
    result[r] = extent(n, r);
  return result;
}

template <typename T, typename Get>
static std::string listText(const std::vector<T> &values, Get &&get) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + std::to_string(get(values[i]));
  return text + "]";
}

std::string AxisSplit::options() const {
  std::string text;
  auto add = [&](const char *name, const std::string &value) {
    text += std::string(text.empty() ? "" : ", ") + name + " = " + value;
  };
  if (isUnequal()) {
    std::vector<SplitBlock> list = unequalBlocks(sizes);
    add("blocks", listText(list, [](const SplitBlock &block) { return block.size; }));
    bool isOne = std::all_of(list.begin(), list.end(), [&](const SplitBlock &block) {
      return block.granule == list.front().granule;
    });
    if (!isOne)
      add("granule", listText(list, [](const SplitBlock &block) { return block.granule; }));
    else if (!list.empty() && list.front().granule != 1)
      add("granule", std::to_string(list.front().granule));
    return text;
  }
  if (blocks != 1)
    add("blocks", std::to_string(blocks));
  if (granule != 1)
    add("granule", std::to_string(granule));
  if (!sizes.empty())
    add("sizes", listText(sizes, [](int64_t size) { return size; }));
  return text;
}

bool DimSplit::isOverAxesOf(const DimSplit &other) const {
  return std::ranges::equal(axes, other.axes, {}, &AxisSplit::axis, &AxisSplit::axis);
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
    int64_t coordinateOfAxis = coordinate[split.axis];
    for (const Run &piece : split.pieces(n, coordinateOfAxis))
      appendSlice(held, piece, next);
    n = split.extent(n, coordinateOfAxis);
    held = std::move(next);
  }
  return held;
}

DimSplit::Owner DimSplit::owner(int64_t n, int64_t index) const {
  Owner result;
  result.coordinates.reserve(axes.size());
  for (const AxisSplit &split : axes) {
    if (split.isUnequal()) {
      int64_t r = 0, before = -1; // elements of the coordinate before that of the index
      for (; before < 0 && r < split.count; r += before < 0) {
        int64_t seen = 0;
        for (const Run &piece : split.pieces(n, r)) {
          if (piece.begin <= index && index < piece.end)
            before = seen + index - piece.begin;
          seen += piece.size();
        }
      }
      result.coordinates.push_back(r);
      index = before;
      n = split.extent(n, r);
      continue;
    }
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
    std::string options = split.options();
    text = "chunk(" + text + ", " + std::to_string(split.count) +
           (options.empty() ? "" : ", " + options) + ")[" + mesh.axes[split.axis].name + "]";
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
