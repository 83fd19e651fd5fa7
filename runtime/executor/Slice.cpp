// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/executor/Slice.h"

#include "runtime/support/Copy.h"
#include "runtime/support/Types.h"

#include <algorithm>

namespace shardc::rt {

Slice Slice::make(const shardc::Layout &layout, std::vector<int64_t> global,
                  const std::optional<shardc::Coordinate> &coordinate) {
  Slice slice;
  slice.global = std::move(global);
  for (size_t d = 0; d < slice.global.size(); ++d) {
    std::vector<shardc::Run> runs;
    if (coordinate)
      runs = layout.splitOfDim(int64_t(d)).runs(slice.global[d], *coordinate);
    int64_t extent = 0;
    for (const shardc::Run &run : runs)
      extent += run.size();
    slice.local.push_back(extent);
    slice.runs.push_back(std::move(runs));
  }
  return slice;
}

int64_t Slice::elements() const { return countElements(local.data(), local.size()); }

bool Slice::isBox() const {
  return std::all_of(runs.begin(), runs.end(), [](auto &list) { return list.size() <= 1; });
}

int64_t Slice::offset(const int64_t *strides) const {
  int64_t offset = 0;
  for (size_t d = 0; d < runs.size(); ++d)
    offset += runs[d].front().begin * strides[d];
  return offset;
}

namespace {

/// The indices [begin, end) of a dim's local range.
std::vector<shardc::Run> cutRuns(const std::vector<shardc::Run> &runs, int64_t begin, int64_t end) {
  std::vector<shardc::Run> out;
  int64_t at = 0; // local index of the run's begin
  for (const shardc::Run &run : runs) {
    int64_t from = std::max(begin - at, int64_t(0)), to = std::min(end - at, run.size());
    if (from < to)
      out.push_back({run.begin + from, run.begin + to});
    at += run.size();
  }
  return out;
}

/// Cuts along the first dim of more than one element, so that pieces stay dense ranges.
void cut(const Slice &slice, int64_t most, std::vector<Slice> &out) {
  int64_t count = slice.elements();
  if (count <= most) {
    out.push_back(slice);
    return;
  }
  size_t d = size_t(std::find_if(slice.local.begin(), slice.local.end(),
                                 [](int64_t extent) { return extent > 1; }) -
                    slice.local.begin());
  int64_t rows = std::max<int64_t>(1, most / (count / slice.local[d]));
  for (int64_t begin = 0; begin < slice.local[d]; begin += rows) {
    int64_t end = std::min(begin + rows, slice.local[d]);
    Slice piece = slice;
    piece.local[d] = end - begin;
    piece.runs[d] = cutRuns(slice.runs[d], begin, end);
    cut(piece, most, out);
  }
}

} // namespace

std::vector<Slice> Slice::pieces(int64_t most) const {
  std::vector<Slice> out;
  if (elements() > 0)
    cut(*this, most, out);
  return out;
}

std::optional<Slice> Slice::within(const std::vector<int64_t> &begin,
                                   const std::vector<int64_t> &extents) const {
  Slice inside = *this;
  inside.global = extents;
  for (size_t d = 0; d < runs.size(); ++d)
    for (shardc::Run &run : inside.runs[d]) {
      run.begin -= begin[d];
      run.end -= begin[d];
      if (run.begin < 0 || run.end > extents[d])
        return std::nullopt;
    }
  return inside;
}

void Slice::forEachBox(const Visit &visit) const {
  size_t rank = local.size();
  if (elements() == 0)
    return;
  std::vector<size_t> index(rank, 0);
  std::vector<int64_t> globalBegin(rank), localBegin(rank, 0), extents(rank);
  while (true) {
    for (size_t d = 0; d < rank; ++d) {
      globalBegin[d] = runs[d][index[d]].begin;
      extents[d] = runs[d][index[d]].size();
    }
    visit(globalBegin, localBegin, extents);
    // The next combination of intervals, the last dim fastest.
    size_t d = rank;
    while (d > 0) {
      --d;
      localBegin[d] += runs[d][index[d]].size();
      if (++index[d] < runs[d].size())
        break;
      index[d] = 0;
      localBegin[d] = 0;
      if (d == 0)
        return;
    }
    if (rank == 0)
      return;
  }
}

namespace {
int64_t dot(std::span<const int64_t> index, const int64_t *strides) {
  int64_t sum = 0;
  for (size_t d = 0; d < index.size(); ++d)
    sum += index[d] * strides[d];
  return sum;
}
} // namespace

void Slice::extract(void *to, const void *from, const int64_t *strides, int64_t bytes) const {
  std::vector<int64_t> dense(local.size());
  denseStrides(local, dense.data());
  forEachBox([&](auto globalBegin, auto localBegin, auto extents) {
    copyBox(static_cast<char *>(to) + dot(localBegin, dense.data()) * bytes, dense.data(),
            static_cast<const char *>(from) + dot(globalBegin, strides) * bytes, strides, extents,
            bytes);
  });
}

void Slice::insert(void *to, const int64_t *strides, const void *from, int64_t bytes) const {
  std::vector<int64_t> dense(local.size());
  denseStrides(local, dense.data());
  forEachBox([&](auto globalBegin, auto localBegin, auto extents) {
    copyBox(static_cast<char *>(to) + dot(globalBegin, strides) * bytes, strides,
            static_cast<const char *>(from) + dot(localBegin, dense.data()) * bytes, dense.data(),
            extents, bytes);
  });
}

bool writesPart(const shardc::Layout &layout, const std::optional<shardc::Coordinate> &coordinate) {
  if (!coordinate)
    return false;
  for (size_t axis = 0; axis < layout.placements.size(); ++axis)
    if (!layout.placements[axis].isShard() && (*coordinate)[axis] != 0)
      return false;
  return true;
}

} // namespace shardc::rt
