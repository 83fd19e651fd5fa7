// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/localize/core/RowsBeside.h"

#include <algorithm>

namespace shardc {

Run hullOf(Run a, Run b) {
  if (a.size() <= 0 || b.size() <= 0)
    return a.size() <= 0 ? b : a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

int64_t RowsBeside::most() const {
  int64_t most = 0;
  for (size_t rank = 0; rank < before.size(); ++rank)
    most = std::max(most, before[rank].size() + behind[rank].size());
  return most;
}

RowsBeside rowsBeside(std::span<const Run> own, std::span<const Run> needed) {
  auto orEmpty = [](Run run) { return run.begin < run.end ? run : Run{}; };
  RowsBeside rows;
  for (size_t rank = 0; rank < own.size(); ++rank) {
    Run have = own[rank], need = needed[rank];
    if (have.size() <= 0) {
      rows.before.push_back(orEmpty(need));
      rows.behind.emplace_back();
      continue;
    }
    rows.before.push_back(orEmpty({need.begin, std::min(need.end, have.begin)}));
    rows.behind.push_back(orEmpty({std::max(need.begin, have.end), need.end}));
  }
  return rows;
}

} // namespace shardc
