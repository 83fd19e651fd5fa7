// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lowering/cuda/scatter/ScatterDivision.h"

#include <algorithm>

using namespace shardc::cuda;

/// Unknown if one is, or if the product is too large for 62 bits.
static int64_t multiply(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0)
    return 0;
  if (a == kUnknownSize || b == kUnknownSize || __builtin_mul_overflow(a, b, &product) ||
      product >= int64_t{1} << 62)
    return kUnknownSize;
  return product;
}

ScatterDivision shardc::cuda::divideScatter(const ScatterShape &shape) {
  ScatterDivision division;
  std::vector<bool> isColumn(shape.domain.size(), false);
  for (size_t dim = 0; dim < shape.out.size(); ++dim) {
    int64_t loop = shape.loops[dim];
    // A loop that is two dims, as of a diagonal, has one element in each row of the one.
    if (loop < 0 || shape.varying[loop] ||
        std::count(shape.loops.begin(), shape.loops.end(), loop) > 1) {
      division.rowDims.push_back(static_cast<unsigned>(dim));
      division.rows = multiply(division.rows, shape.out[dim]);
      continue;
    }
    isColumn[loop] = true;
    bool whole = shape.out[dim] != kUnknownSize && shape.out[dim] == shape.domain[loop];
    division.columns.push_back({static_cast<unsigned>(dim), static_cast<unsigned>(loop), whole});
    division.elementsOfRow = multiply(division.elementsOfRow, shape.out[dim]);
  }
  for (size_t loop = 0; loop < shape.domain.size(); ++loop) {
    if (isColumn[loop])
      continue;
    division.updateLoops.push_back(static_cast<unsigned>(loop));
    division.updates = multiply(division.updates, shape.domain[loop]);
  }

  // The buffers of the sort hold two halves, and blocks round up.
  constexpr int64_t kSafe = int64_t{1} << 29;
  auto isSmall = [](int64_t size) { return size != kUnknownSize && size < kSafe; };
  division.narrow =
      isSmall(division.updates) && isSmall(division.rows) && isSmall(division.elementsOfRow);

  // Threads beside each other shall have elements beside each other.
  size_t innermost = shape.out.size();
  while (innermost > 0 && shape.out[innermost - 1] == 1)
    --innermost;
  bool alongColumns =
      std::any_of(division.columns.begin(), division.columns.end(),
                  [&](const ScatterColumn &column) { return column.dim + 1 == innermost; });
  if (alongColumns && division.elementsOfRow == kUnknownSize)
    division.lanes = 32;
  else if (alongColumns)
    while (division.lanes < division.elementsOfRow && division.lanes < ScatterDivision::kMostLanes)
      division.lanes *= 2;
  return division;
}

unsigned shardc::cuda::countDigits(uint64_t largest, unsigned bits) {
  unsigned digits = 1;
  while (digits * bits < 64 && largest >> (digits * bits) != 0)
    ++digits;
  return digits;
}
