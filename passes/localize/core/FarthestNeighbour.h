// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far, in ranks, an element is from a rank whose positions cover it, where sizes are known only
// when the program runs.
#ifndef SHARDC_PASSES_LOCALIZE_CORE_FARTHESTNEIGHBOUR_H
#define SHARDC_PASSES_LOCALIZE_CORE_FARTHESTNEIGHBOUR_H

#include <cstdint>
#include <functional>
#include <optional>

namespace shardc {

/// An image and positions in it, each in plain chunks over the same `ranks`: position i covers
/// `extent` elements from element (`origin` + i * `stride`) / `per` on, rounded down. How many
/// there are of both depends on a symbol between `least` and `most`; nothing where an expression
/// has no value.
struct ChunkedWindows {
  std::function<std::optional<int64_t>(int64_t symbol)> size, count;
  int64_t least = 0, most = 0;
  /// A multiple of all divisors in the expressions: what they are beyond a straight line repeats
  /// with it.
  int64_t divisor = 1;
  int64_t ranks = 1;
  int64_t origin = 0, stride = 1, per = 1, extent = 1;
  /// Whether a position before or behind the image means the element at that end of it.
  bool isCut = false;
};

/// The largest distance in the order of the ranks between one that has positions and one that has
/// an element under them, for all values of the symbol: no less than that, and the same where the
/// range of the symbol is short. Nothing where it cannot be said, or where only a long search could
/// say it.
///
/// With chunks of C elements and P positions rank r needs elements from (r P stride + origin) / per
/// on, and their owner is that over C. A symbol that is larger by a period makes C larger by
/// D stride / per and P by D, for some D: the quotient is then between what it was and r, which is
/// its limit. So values of one period, from the least on, say it for all.
std::optional<int64_t> farthestNeighbour(const ChunkedWindows &windows);

} // namespace shardc

#endif // SHARDC_PASSES_LOCALIZE_CORE_FARTHESTNEIGHBOUR_H
