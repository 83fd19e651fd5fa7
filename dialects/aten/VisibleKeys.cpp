// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A query of a field of several dims sees the product of what it sees along each of them, so that
// the lines through the first position tell what the windows may be. All queries are compared with
// these windows then.
#include "dialects/aten/VisibleKeys.h"

#include <algorithm>
#include <array>

namespace shardc::aten {
namespace {

constexpr size_t kMostDims = 3;

/// What is seen along one line of positions by one of them. Two windows with equal numbers see the
/// same keys, as the distance between keys is the same all along the line.
struct Seen {
  int64_t count = 0, first = -1, last = -1;
  bool operator==(const Seen &) const = default;
};

/// The positions 0, step, 2 * step, ... of a mask, `size` of them.
std::vector<Seen> lineOf(const VisibleKeys &keys, int64_t step, int64_t size) {
  std::vector<Seen> line(size);
  for (int64_t i = 0; i < size; ++i)
    for (Run run : keys.of(i * step)) {
      int64_t first = (run.begin + step - 1) / step;
      int64_t end = std::min((run.end + step - 1) / step, size);
      if (first >= end)
        continue;
      if (line[i].count == 0)
        line[i].first = first;
      line[i].count += end - first;
      line[i].last = end - 1;
    }
  return line;
}

bool fits(const Neighborhood &window, llvm::ArrayRef<Seen> line) {
  auto size = static_cast<int64_t>(line.size());
  if (!window.isCut() && size < window.kernel * window.dilation)
    return false;
  for (int64_t i = 0; i < size; ++i) {
    Run keys = window.keysOf(i, size);
    if (line[i] != Seen{window.countOf(i, size), keys.begin, keys.end - 1})
      return false;
  }
  return true;
}

/// The window that the positions of a line see.
std::optional<Neighborhood> windowOf(llvm::ArrayRef<Seen> line) {
  const Seen *most = &line.front();
  for (const auto &[i, seen] : llvm::enumerate(line)) {
    auto own = static_cast<int64_t>(i);
    if (seen.count == 0 || seen.first > own || seen.last < own)
      return std::nullopt;
    if (seen.count > most->count)
      most = &seen;
  }
  if (most->count == 1)
    return Neighborhood();
  int64_t span = most->last - most->first, dilation = span / (most->count - 1);
  if (span % (most->count - 1) != 0)
    return std::nullopt;
  int64_t begin = line.front().count, end = line.back().count;
  Neighborhood moved{begin, 1, dilation, false};
  for (; moved.stride <= moved.kernel; ++moved.stride)
    if (fits(moved, line))
      return moved;
  // The first query sees what is behind it, the last one what is before it.
  Neighborhood cut{begin + end - 1, 1, dilation, false, begin - 1};
  if (fits(cut, line))
    return cut;
  Neighborhood causal{most->count, 2, dilation, true};
  for (; begin == 1 && causal.stride <= causal.kernel; ++causal.stride)
    if (fits(causal, line))
      return causal;
  return std::nullopt;
}

/// Compares all queries with the windows of a field, whose dims are three here.
bool seesExactly(const VisibleKeys &keys, llvm::ArrayRef<int64_t> sizes,
                 llvm::ArrayRef<Neighborhood> windows) {
  std::array<int64_t, kMostDims> size{1, 1, 1};
  std::array<Neighborhood, kMostDims> window;
  size_t missing = kMostDims - sizes.size();
  for (size_t dim = missing; dim < kMostDims; ++dim)
    size[dim] = sizes[dim - missing], window[dim] = windows[dim - missing];
  std::vector<Run> expected;
  auto see = [&](int64_t begin, int64_t end) {
    if (!expected.empty() && expected.back().end == begin)
      expected.back().end = end;
    else
      expected.push_back({begin, end});
  };
  for (int64_t query = 0; query < keys.size(); ++query) {
    Run z = window[0].keysOf(query / (size[1] * size[2]), size[0]);
    Run y = window[1].keysOf(query / size[2] % size[1], size[1]);
    Run x = window[2].keysOf(query % size[2], size[2]);
    expected.clear();
    for (int64_t i = z.begin; i < z.end; i += window[0].dilation)
      for (int64_t j = y.begin; j < y.end; j += window[1].dilation) {
        int64_t row = (i * size[1] + j) * size[2];
        if (window[2].dilation == 1)
          see(row + x.begin, row + x.end);
        else
          for (int64_t k = x.begin; k < x.end; k += window[2].dilation)
            see(row + k, row + k + 1);
      }
    if (keys.of(query) != llvm::ArrayRef(expected))
      return false;
  }
  return true;
}

std::optional<NeighborhoodField> fieldOf(const VisibleKeys &keys, llvm::ArrayRef<int64_t> sizes) {
  NeighborhoodField field;
  field.sizes.assign(sizes.begin(), sizes.end());
  int64_t step = keys.size();
  for (int64_t size : sizes) {
    step /= size;
    std::optional<Neighborhood> window = windowOf(lineOf(keys, step, size));
    if (!window)
      return std::nullopt;
    field.neighborhoods.push_back(*window);
  }
  if (!seesExactly(keys, field.sizes, field.neighborhoods))
    return std::nullopt;
  return field;
}

/// Fields with this many dims, of `rest` positions each of the positions that `sizes` make.
std::optional<NeighborhoodField>
search(const VisibleKeys &keys, llvm::SmallVector<int64_t, 3> &sizes, int64_t rest, size_t dims) {
  if (dims == 1) {
    sizes.push_back(rest);
    std::optional<NeighborhoodField> field = fieldOf(keys, sizes);
    sizes.pop_back();
    return field;
  }
  for (int64_t size = 2; size <= rest / 2; ++size) {
    if (rest % size != 0)
      continue;
    sizes.push_back(size);
    std::optional<NeighborhoodField> field = search(keys, sizes, rest / size, dims - 1);
    sizes.pop_back();
    if (field)
      return field;
  }
  return std::nullopt;
}

} // namespace

int64_t NeighborhoodField::numNeighbors() const {
  int64_t product = 1;
  for (const Neighborhood &one : neighborhoods)
    product *= one.kernel;
  return product;
}

std::optional<NeighborhoodField> findNeighborhoods(const VisibleKeys &keys) {
  llvm::SmallVector<int64_t, 3> sizes;
  for (size_t dims = 1; dims <= kMostDims && keys.size() > 0; ++dims)
    if (std::optional<NeighborhoodField> field = search(keys, sizes, keys.size(), dims))
      return field;
  return std::nullopt;
}

} // namespace shardc::aten
