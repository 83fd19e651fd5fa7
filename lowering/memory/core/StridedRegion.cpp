// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/memory/core/StridedRegion.h"

#include <algorithm>

namespace shardc::memory {

namespace {

using Dim = StridedRegion::Dim;

/// Dims from the largest stride to the smallest, sizes at least 2, each stride at least the span of
/// the dims behind it.
struct Piece {
  int64_t offset = 0;
  std::vector<Dim> dims;

  int64_t span() const {
    int64_t last = 0;
    for (const Dim &dim : dims)
      last += (dim.size - 1) * dim.stride;
    return last + 1;
  }
  bool isRun() const { return dims.empty() || (dims.size() == 1 && dims.front().stride == 1); }
};
using Pieces = std::vector<Piece>;

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

void append(Pieces &pieces, int64_t offset, std::vector<Dim> dims) {
  std::sort(dims.begin(), dims.end(), [](Dim a, Dim b) { return a.stride < b.stride; });
  std::vector<Dim> inner; // from the smallest stride
  for (Dim dim : dims) {
    if (dim.size == 1 || dim.stride == 0)
      continue;
    if (!inner.empty()) {
      // Steps of the outer dim that leave no gap in the inner one make it longer.
      auto &[size, stride] = inner.back();
      if (dim.stride % stride == 0 && dim.stride / stride <= size) {
        size += (dim.size - 1) * (dim.stride / stride);
        continue;
      }
    }
    inner.push_back(dim);
  }
  int64_t span = 1;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i].stride < span) { // overlapping dims that are none: each step on its own
      Dim outer = inner[i];
      inner.erase(inner.begin() + ptrdiff_t(i));
      for (int64_t step = 0; step < outer.size; ++step)
        append(pieces, offset + step * outer.stride, inner);
      return;
    }
    span += (inner[i].size - 1) * inner[i].stride;
  }
  std::reverse(inner.begin(), inner.end());
  pieces.push_back({offset, std::move(inner)});
}

void append(Pieces &pieces, const StridedRegion &region) {
  if (region.isEmpty())
    return;
  int64_t offset = region.offset;
  std::vector<Dim> dims = region.dims;
  for (Dim &dim : dims)
    if (dim.stride < 0) {
      offset += (dim.size - 1) * dim.stride;
      dim.stride = -dim.stride;
    }
  append(pieces, offset, std::move(dims));
}

/// What of `piece` lies before `address`, and what does not.
void splitAt(const Piece &piece, int64_t address, Pieces &before, Pieces &behind) {
  if (piece.offset >= address)
    return behind.push_back(piece);
  if (piece.offset + piece.span() <= address)
    return before.push_back(piece);
  // Some steps of the outermost dim lie before it as a whole, then one at most is cut.
  Dim outer = piece.dims.front();
  Piece inner{piece.offset, {piece.dims.begin() + 1, piece.dims.end()}};
  int64_t innerSpan = inner.span();
  auto steps = [&](int64_t from, int64_t count) {
    Piece part{piece.offset + from * outer.stride, inner.dims};
    if (count > 1)
      part.dims.insert(part.dims.begin(), {count, outer.stride});
    return part;
  };
  int64_t whole = std::clamp<int64_t>(
      floorDivide(address - innerSpan - piece.offset, outer.stride) + 1, 0, outer.size);
  if (whole > 0)
    before.push_back(steps(0, whole));
  int64_t cut = whole;
  if (cut < outer.size && piece.offset + cut * outer.stride < address) {
    splitAt(steps(cut, 1), address, before, behind);
    ++cut;
  }
  if (cut < outer.size)
    behind.push_back(steps(cut, outer.size - cut));
}

/// The same addresses in each of the rows [first, end), each of `width` elements.
struct Rows {
  int64_t first, end;
  Piece inRow;
  bool isFirstList;
};

void appendRows(std::vector<Rows> &rows, Piece piece, int64_t width, bool isFirstList) {
  auto add = [&](int64_t first, int64_t count, Piece inRow) {
    inRow.offset -= first * width;
    rows.push_back({first, first + count, std::move(inRow), isFirstList});
  };
  int64_t row = floorDivide(piece.offset, width);
  if (!piece.dims.empty() && piece.dims.front().stride == width) {
    int64_t count = piece.dims.front().size;
    piece.dims.erase(piece.dims.begin());
    Pieces here, next;
    splitAt(piece, (row + 1) * width, here, next);
    for (Piece &part : here)
      add(row, count, std::move(part));
    for (Piece &part : next)
      add(row + 1, count, std::move(part));
    return;
  }
  int64_t end = piece.offset + piece.span();
  if (piece.isRun()) { // all rows between the first and the last are full
    int64_t fullFrom = -floorDivide(-piece.offset, width), fullTo = floorDivide(end, width);
    if (fullFrom < fullTo) {
      auto run = [](int64_t from, int64_t to) {
        Piece part{from, {}};
        if (to - from > 1)
          part.dims.push_back({to - from, 1});
        return part;
      };
      if (piece.offset < fullFrom * width)
        add(row, 1, run(piece.offset, fullFrom * width));
      add(fullFrom, fullTo - fullFrom, run(fullFrom * width, (fullFrom + 1) * width));
      if (fullTo * width < end)
        add(fullTo, 1, run(fullTo * width, end));
      return;
    }
  }
  Pieces rest{std::move(piece)};
  for (; !rest.empty(); ++row) {
    Pieces here, next;
    for (const Piece &part : rest)
      splitAt(part, (row + 1) * width, here, next);
    for (Piece &part : here)
      add(row, 1, std::move(part));
    rest = std::move(next);
  }
}

/// Looks for an element of the first list that `isFound`, a function of runs, finds.
template <typename RunSearch>
std::optional<int64_t> search(const Pieces &first, const Pieces &second, RunSearch findInRuns) {
  if (first.empty())
    return std::nullopt;
  int64_t width = 1;
  for (const Pieces *list : {&first, &second})
    for (const Piece &piece : *list)
      if (!piece.dims.empty())
        width = std::max(width, piece.dims.front().stride);
  if (width == 1)
    return findInRuns(first, second);
  std::vector<Rows> rows;
  for (const Piece &piece : first)
    appendRows(rows, piece, width, true);
  for (const Piece &piece : second)
    appendRows(rows, piece, width, false);
  // Between two borders every row is the same.
  std::vector<int64_t> borders;
  for (const Rows &entry : rows)
    borders.insert(borders.end(), {entry.first, entry.end});
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::sort(rows.begin(), rows.end(),
            [](const Rows &a, const Rows &b) { return a.first < b.first; });
  std::vector<const Rows *> active;
  size_t next = 0;
  for (int64_t border : borders) {
    std::erase_if(active, [&](const Rows *entry) { return entry->end <= border; });
    for (; next < rows.size() && rows[next].first == border; ++next)
      active.push_back(&rows[next]);
    Pieces a, b;
    for (const Rows *entry : active)
      (entry->isFirstList ? a : b).push_back(entry->inRow);
    if (std::optional<int64_t> found = search(a, b, findInRuns))
      return border * width + *found;
  }
  return std::nullopt;
}

std::optional<int64_t> outsideOfRuns(const Pieces &runs, const Pieces &others) {
  Pieces sorted = others;
  std::sort(sorted.begin(), sorted.end(),
            [](const Piece &a, const Piece &b) { return a.offset < b.offset; });
  for (const Piece &run : runs) {
    int64_t reached = run.offset, end = run.offset + run.span();
    for (const Piece &other : sorted)
      if (other.offset <= reached)
        reached = std::max(reached, other.offset + other.span());
    if (reached < end)
      return reached;
  }
  return std::nullopt;
}

std::optional<int64_t> commonOfRuns(const Pieces &runs, const Pieces &others) {
  for (const Piece &run : runs)
    for (const Piece &other : others) {
      int64_t from = std::max(run.offset, other.offset);
      if (from < std::min(run.offset + run.span(), other.offset + other.span()))
        return from;
    }
  return std::nullopt;
}

} // namespace

bool StridedRegion::isEmpty() const {
  return std::any_of(dims.begin(), dims.end(), [](Dim dim) { return dim.size <= 0; });
}

std::optional<int64_t> findOutside(const StridedRegion &region,
                                   std::span<const StridedRegion> others) {
  Pieces first, second;
  append(first, region);
  for (const StridedRegion &other : others)
    append(second, other);
  return search(first, second, outsideOfRuns);
}

std::optional<int64_t> findCommon(const StridedRegion &a, const StridedRegion &b) {
  Pieces first, second;
  append(first, a);
  append(second, b);
  return search(first, second, commonOfRuns);
}

} // namespace shardc::memory
