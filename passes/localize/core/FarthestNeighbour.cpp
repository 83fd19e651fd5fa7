// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/FarthestNeighbour.h"

#include "dialects/sharding/DimSplit.h"

#include <algorithm>

namespace shardc {

namespace {
/// How often the search may look at a rank: for a period, and for the values of a symbol one by
/// one.
constexpr int64_t kMostSteps = 1 << 20, kMostExact = 1 << 14;
} // namespace

static int64_t floorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceilDiv(-a, b); }

/// By which a symbol must grow so that image and positions grow in proportion, by whole chunks;
/// nothing where they do not, or it is too much to look at.
static std::optional<int64_t> periodOf(const ChunkedWindows &windows) {
  if (windows.divisor > kMostSteps || windows.stride > kMostSteps)
    return std::nullopt;
  int64_t period = windows.divisor * windows.stride;
  if (period > kMostSteps / windows.ranks / windows.ranks)
    return std::nullopt;
  period *= windows.ranks;
  std::optional<int64_t> size = windows.size(windows.least), count = windows.count(windows.least),
                         nextSize = windows.size(windows.least + period),
                         nextCount = windows.count(windows.least + period);
  if (!size || !count || !nextSize || !nextCount)
    return std::nullopt;
  int64_t elements = *nextSize - *size, positions = *nextCount - *count;
  bool isInProportion = positions > 0 && elements * windows.per == positions * windows.stride &&
                        positions % windows.ranks == 0 && elements % windows.ranks == 0;
  return isInProportion ? std::optional(period) : std::nullopt;
}

/// `all`: ranks without positions count as if they had some, as they may for larger sizes.
static int64_t distanceAt(const ChunkedWindows &windows, int64_t size, int64_t count, bool all) {
  int64_t chunk = ceilDiv(size, windows.ranks), positions = ceilDiv(count, windows.ranks);
  int64_t farthest = 0;
  for (int64_t rank = 0; rank < windows.ranks; ++rank) {
    int64_t first = rank * positions, last = first + positions - 1;
    if (!all && first >= count)
      break;
    int64_t end = all ? windows.ranks * chunk : size;
    if (!all)
      last = std::min(last, count - 1);
    auto elementOf = [&](int64_t position) {
      return floorDiv(position * windows.stride + windows.origin, windows.per);
    };
    auto look = [&](int64_t begin, int64_t behind) {
      if (begin < behind)
        farthest = std::max(
            {farthest, std::abs(begin / chunk - rank), std::abs((behind - 1) / chunk - rank)});
    };
    int64_t begin = std::max<int64_t>(elementOf(first), 0);
    int64_t behind = elementOf(last) + windows.extent;
    look(begin, std::min(behind, end));
    // What is cut for this size may not be for a larger one, so that both count.
    if (windows.isCut)
      look(std::min(begin, size - 1), std::clamp<int64_t>(behind, 1, size));
  }
  return farthest;
}

std::optional<int64_t> farthestNeighbour(const ChunkedWindows &windows) {
  if (windows.most < windows.least)
    return std::nullopt;
  int64_t farthest = 0, last = windows.most;
  bool isLong = windows.most - windows.least > kMostExact / windows.ranks;
  if (isLong) {
    std::optional<int64_t> period = periodOf(windows);
    if (!period)
      return std::nullopt;
    last = std::min(last, windows.least + *period - 1);
  }
  for (int64_t symbol = windows.least; symbol <= last; ++symbol) {
    std::optional<int64_t> size = windows.size(symbol), count = windows.count(symbol);
    if (!size || !count)
      return std::nullopt;
    if (*size > 0 && *count > 0)
      farthest = std::max(farthest, distanceAt(windows, *size, *count, isLong));
  }
  return farthest;
}

} // namespace shardc
