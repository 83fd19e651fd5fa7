// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What rules say of a neighbouring factor: how much the ranks of an axis fetch depends on their
// number, and a rule counts what the one of two lacks which lacks more.
#ifndef SHARDC_DIALECTS_SHARDING_HALOCOST_H
#define SHARDC_DIALECTS_SHARDING_HALOCOST_H

#include "dialects/sharding/DimSplit.h"

#include <algorithm>
#include <span>

namespace shardc {

/// What a size counts as that is known only when the program runs.
inline constexpr int64_t kTypicalSize = 128;

/// PyTorch's chunk of `n` elements on one of two ranks.
inline Run chunkOfTwo(int64_t n, int64_t rank) {
  int64_t half = ceilDiv(n, 2);
  return rank == 0 ? Run{0, half} : Run{half, n};
}

/// How many elements of `wanted` are not in `own`.
inline int64_t lackedOf(const Run &wanted, const Run &own) {
  int64_t common = std::min(own.end, wanted.end) - std::max(own.begin, wanted.begin);
  return wanted.size() - std::max<int64_t>(common, 0);
}

/// Of a dim of `size` elements and another one of `count` positions, each in chunks on two ranks:
/// the most elements that a rank lacks of what `cover` says that its positions need.
template <typename Cover> int64_t mostLackedOfTwo(int64_t size, int64_t count, const Cover &cover) {
  int64_t most = 0;
  for (int64_t rank : {0, 1})
    most = std::max(most, lackedOf(cover(chunkOfTwo(count, rank)), chunkOfTwo(size, rank)));
  return most;
}

/// The product of sizes, of which unknown ones count as 1.
inline double elementsOf(std::span<const int64_t> shape) {
  double product = 1;
  for (int64_t n : shape)
    product *= n == kDynamic ? 1.0 : static_cast<double>(n);
  return product;
}

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_HALOCOST_H
