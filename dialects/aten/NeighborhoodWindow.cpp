// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/aten/NeighborhoodWindow.h"

#include <algorithm>

namespace shardc::aten {

Run Neighborhood::keysOf(int64_t query, int64_t size) const {
  // In the line of this query.
  int64_t rest = query % dilation, at = query / dilation;
  int64_t length = (size - rest + dilation - 1) / dilation;
  int64_t first = at / stride * stride, begin, end;
  if (isCut()) {
    begin = std::max<int64_t>(at + cut + 1 - kernel, 0);
    end = std::min(at + cut + 1, length);
  } else if (isCausal) {
    int64_t leader = std::min(first + stride - 1, length - 1);
    begin = std::max<int64_t>(leader - kernel + 1, 0);
    end = at + 1;
  } else {
    int64_t leader = std::min(first + stride / 2, length - 1);
    begin = std::clamp<int64_t>(leader - kernel / 2, 0, std::max<int64_t>(length - kernel, 0));
    end = std::min(begin + kernel, length);
  }
  // A stride of more than a causal kernel leaves a query without keys.
  if (begin >= end)
    return {query, query};
  return {begin * dilation + rest, (end - 1) * dilation + rest + 1};
}

int64_t Neighborhood::countOf(int64_t query, int64_t size) const {
  int64_t span = keysOf(query, size).size();
  return span == 0 ? 0 : (span - 1) / dilation + 1;
}

int64_t Neighborhood::mostQueries(int64_t size) const {
  if (isCausal)
    return kernel;
  if (isCut())
    return size == kDynamic ? kernel : std::min(kernel, (size + dilation - 1) / dilation);
  // Inside, a key has `kernel` queries, and those that share a window with the last of them. In
  // the first and the last windows it has the queries up to the border, too.
  int64_t most = 2 * kernel - 1;
  if (size == kDynamic)
    return most;
  int64_t longest = (size + dilation - 1) / dilation, shortest = size / dilation;
  if (shortest >= 2 * kernel)
    most = std::max({kernel + kernel / 2 + stride - 1 - stride / 2,
                     2 * kernel - 1 - kernel / 2 + stride / 2, kernel + stride - 1});
  return std::min(most, longest);
}

Run keysOfAll(const Neighborhood &neighborhood, Run queries, int64_t size) {
  Run all{0, 0};
  for (int64_t query = queries.begin; query < queries.end; ++query) {
    Run keys = neighborhood.keysOf(query, size);
    if (keys.begin >= keys.end)
      continue;
    if (all.begin >= all.end)
      all = keys;
    all = {std::min(all.begin, keys.begin), std::max(all.end, keys.end)};
  }
  return all;
}

} // namespace shardc::aten
