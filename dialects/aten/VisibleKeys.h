// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The mask of an attention, as which keys each query sees; and whether that is neighborhood
// attention over a line, an image or a volume whose positions are flattened.
#ifndef SHARDC_DIALECTS_ATEN_VISIBLEKEYS_H
#define SHARDC_DIALECTS_ATEN_VISIBLEKEYS_H

#include "dialects/aten/NeighborhoodWindow.h"
#include "llvm/ADT/ArrayRef.h"

#include <optional>
#include <vector>

namespace shardc::aten {

/// Of as many queries as keys, one after the other: runs of keys, ascending, with gaps between
/// them.
class VisibleKeys {
public:
  /// Adds the next query.
  void append(llvm::ArrayRef<Run> keys) {
    runs.insert(runs.end(), keys.begin(), keys.end());
    ends.push_back(runs.size());
  }

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  llvm::ArrayRef<Run> of(int64_t query) const {
    size_t begin = query == 0 ? 0 : ends[query - 1];
    return llvm::ArrayRef(runs).slice(begin, ends[query] - begin);
  }
  size_t numRuns() const { return runs.size(); }
  bool operator==(const VisibleKeys &) const = default;

private:
  std::vector<Run> runs;
  std::vector<size_t> ends; ///< where the runs of each query end
};

/// Positions of a field in row-major order, and what each sees.
struct NeighborhoodField {
  llvm::SmallVector<int64_t, 3> sizes;
  Neighborhoods neighborhoods; ///< one for each dim

  /// The number of keys that a query is computed with.
  int64_t numNeighbors() const;
  bool operator==(const NeighborhoodField &) const = default;
};

/// The field of which `keys` are exactly what its queries see, with as few dims as possible, at
/// most three.
std::optional<NeighborhoodField> findNeighborhoods(const VisibleKeys &keys);

} // namespace shardc::aten

#endif // SHARDC_DIALECTS_ATEN_VISIBLEKEYS_H
