// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/Pieces.h"

#include "dialects/sharding/DimSplit.h"

#include <algorithm>

namespace shardc {

int64_t sizeOf(const Pieces &pieces) {
  int64_t size = 0;
  for (const Piece &piece : pieces)
    size += piece.count;
  return size;
}

void append(Pieces &pieces, Piece piece) {
  if (piece.count == 0)
    return;
  if (!pieces.empty() && pieces.back().source == piece.source) {
    Piece &last = pieces.back();
    // Of one element the step is open.
    int64_t step = piece.start - (last.start + last.step * (last.count - 1));
    bool fitsLast = last.count == 1 ? step != 0 : step == last.step;
    bool fitsPiece = piece.count == 1 || step == piece.step;
    // Two single elements are a run only where they are neighbours.
    bool isRun = last.count > 1 || piece.count > 1 || step == 1 || step == -1;
    if (fitsLast && fitsPiece && isRun) {
      last.step = step;
      last.count += piece.count;
      return;
    }
  }
  if (piece.count == 1)
    piece.step = 1;
  pieces.push_back(piece);
}

Pieces select(const Pieces &pieces, int64_t start, int64_t step, int64_t count) {
  // From the other end, where it goes back.
  bool isReversed = step < 0;
  if (isReversed) {
    start += step * (count - 1);
    step = -step;
  }
  std::vector<Piece> taken;
  int64_t begin = 0;
  for (const Piece &piece : pieces) {
    int64_t end = begin + piece.count;
    int64_t first = begin <= start ? 0 : ceilDiv(begin - start, step);
    int64_t last = end <= start ? 0 : std::min(count, ceilDiv(end - start, step));
    if (first < last)
      taken.push_back({piece.source, last - first,
                       piece.start + piece.step * (start + step * first - begin),
                       piece.step * step});
    begin = end;
  }
  if (isReversed) {
    std::reverse(taken.begin(), taken.end());
    for (Piece &piece : taken) {
      piece.start += piece.step * (piece.count - 1);
      piece.step = -piece.step;
    }
  }
  Pieces result;
  for (const Piece &piece : taken)
    append(result, piece);
  return result;
}

} // namespace shardc
